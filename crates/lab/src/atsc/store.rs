//! A store of results, one JSON object a line, so that a long measurement can resume.

use super::{AtscError, PacketScore, ParameterGrid, Point, file};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

/// One receiver on one recording.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StoredResult {
    /// The signal.
    pub point: Point,
    /// The decoder: `millstream`, or GNU Radio with its setting.
    pub receiver: String,
    /// Length of the recording.
    pub seconds: f64,
    /// Its seed.
    pub seed: u64,
    /// The score.
    pub score: PacketScore,
}

impl StoredResult {
    /// Whether it is a signal of this sweep.
    #[must_use]
    pub fn is_part_of(&self, sweep: &ParameterGrid) -> bool {
        let ParameterGrid { points, seconds, seed, .. } = sweep;
        (self.seconds, self.seed) == (*seconds, *seed) && points.contains(&self.point)
    }
}

/// The lines of a file, or of memory only.
#[derive(Debug)]
pub struct ResultStore {
    out: Option<(PathBuf, File)>,
    /// The stored results.
    pub lines: Vec<StoredResult>,
}

impl ResultStore {
    /// Reads a file, if it exists, and appends to it. Drops the lines of the receivers for which
    /// `redo` returns true. Skips a line that was cut short.
    ///
    /// # Errors
    /// [`AtscError::File`] when it cannot be read or written.
    pub fn open(path: Option<&Path>, redo: impl Fn(&str) -> bool) -> Result<Self, AtscError> {
        let Some(path) = path else { return Ok(Self { out: None, lines: Vec::new() }) };
        let text = match std::fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => String::new(),
            Err(error) => return Err(file(path)(error)),
        };
        let lines = text.lines().filter_map(|line| serde_json::from_str(line).ok());
        let lines: Vec<StoredResult> =
            lines.filter(|line: &StoredResult| !redo(&line.receiver)).collect();
        // If the process is killed here, the old file still exists.
        let part = path.with_extension("part");
        let mut out = File::create(&part).map_err(file(&part))?;
        for line in &lines {
            append(&mut out, line).map_err(file(&part))?;
        }
        std::fs::rename(&part, path).map_err(file(path))?;
        Ok(Self { out: Some((path.to_owned(), out)), lines })
    }

    /// The score of one receiver on one recording, if it is stored.
    #[must_use]
    pub fn find(
        &self,
        point: &Point,
        receiver: &str,
        seconds: f64,
        seed: u64,
    ) -> Option<&StoredResult> {
        let wanted = (point, receiver, seconds, seed);
        self.lines
            .iter()
            .find(|line| (&line.point, &*line.receiver, line.seconds, line.seed) == wanted)
    }

    /// Adds a line.
    ///
    /// # Errors
    /// [`AtscError::File`] when it cannot be written.
    pub fn add(&mut self, line: StoredResult) -> Result<(), AtscError> {
        if let Some((path, out)) = &mut self.out {
            append(out, &line).map_err(file(path))?;
        }
        self.lines.push(line);
        Ok(())
    }
}

fn append(out: &mut File, line: &StoredResult) -> std::io::Result<()> {
    let text = serde_json::to_string(line)?;
    out.write_all(format!("{text}\n").as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_goes_on_where_it_ended_and_forgets_what_is_done_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("results.jsonl");
        let line = |receiver: &str, cn_db| StoredResult {
            point: Point::noise(cn_db),
            receiver: receiver.to_owned(),
            seconds: 1.0,
            seed: 7,
            score: PacketScore { right: 5, ..PacketScore::default() },
        };
        let none = |_: &str| false;
        let mut store = ResultStore::open(Some(&path), none).unwrap();
        store.add(line("millstream", 15.0)).unwrap();
        store.add(line("other", 15.0)).unwrap();
        // A process was killed while it wrote.
        File::options().append(true).open(&path).unwrap().write_all(b"{\"point").unwrap();
        let store = ResultStore::open(Some(&path), none).unwrap();
        let found = |cn, seed| store.find(&Point::noise(cn), "millstream", 1.0, seed).is_some();
        assert_eq!([found(15.0, 7), found(15.25, 7), found(15.0, 8)], [true, false, false]);
        let store = ResultStore::open(Some(&path), |receiver| receiver == "millstream").unwrap();
        assert_eq!(store.lines, [line("other", 15.0)]);
    }
}
