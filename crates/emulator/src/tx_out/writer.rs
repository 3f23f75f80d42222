//! The disk's end of a transmit file.

use super::meta::{Stretch, write_meta};
use super::{Chunk, Fate};
use crate::Error;
use millstream_wire::chdr::SC16_LEN;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Writes the samples as they come and remembers their stretches for the metadata.
pub(super) struct Writer {
    path: PathBuf,
    /// What the file is called until it is whole; `None` for a device or a pipe.
    part: Option<PathBuf>,
    file: File,
    written: u64,
    /// The last chunk could not be written.
    broken: bool,
    stretches: Vec<Stretch>,
    fate: Arc<Fate>,
}

impl Writer {
    /// Creates or empties the file. What becomes of it is told to `fate`.
    pub fn create(path: &Path, fate: Arc<Fate>) -> Result<Self, Error> {
        let fail = |reason: String| Error::TxOut { path: path.to_owned(), reason };
        if path.extension().is_some_and(|extension| extension == "sigmf-meta") {
            let reason = "name the data file (.sc16 or .sigmf-data); the metadata lie beside it";
            return Err(fail(reason.to_owned()));
        }
        let is_place = fs::metadata(path).map_or(true, |data| data.is_file() || data.is_dir());
        let part = is_place.then(|| with_part(path));
        let file = match &part {
            Some(_) if path.is_dir() => Err(io::ErrorKind::IsADirectory.into()),
            Some(part) => File::create(part),
            None => File::options().write(true).open(path),
        };
        let file = file.map_err(|error| fail(error.to_string()))?;
        let (path, stretches) = (path.to_owned(), Vec::new());
        Ok(Self { path, part, file, written: 0, broken: false, stretches, fate })
    }

    /// Writes one chunk.
    pub fn write(&mut self, chunk: &Chunk) {
        let samples = chunk.samples.len() as u64;
        let place = self.written * SC16_LEN as u64;
        // A piece may be there even if it fails; what follows is written over it.
        if let Err(error) = self.file.write_all_at(chunk.samples.as_flattened(), place) {
            self.fate.lose(samples, self.refusal("", &error));
            self.broken = true;
            return;
        }
        let broken = std::mem::take(&mut self.broken);
        if broken || !chunk.follows {
            self.stretches.push(Stretch::new(self.written, chunk.begin));
        }
        self.written += samples;
        if let (Some(end), Some(stretch)) = (chunk.end, self.stretches.last_mut()) {
            stretch.finish(self.written, end);
        }
    }

    /// Gives the file its name, and the metadata beside it, when all was written. Beside a device
    /// nothing is put.
    pub fn finish(&mut self) {
        let Some(part) = &self.part else { return };
        let named = self
            .file
            .set_len(self.written * SC16_LEN as u64)
            .map_err(|error| self.refusal("", &error))
            .and_then(|()| if self.fate.is_whole() { Ok(()) } else { Err(None) })
            .and_then(|()| {
                write_meta(&self.path, &self.stretches)
                    .map_err(|error| self.refusal("its metadata: ", &error))
            })
            .and_then(|()| {
                fs::rename(part, &self.path).map_err(|error| self.refusal("its name: ", &error))
            });
        if let Err(refusal) = named {
            self.fate.lose(0, refusal);
        }
    }

    /// Why the system refused to write, and what there is then.
    fn refusal(&self, what: &str, error: &io::Error) -> Option<Error> {
        let left = self.part.as_ref().map_or_else(String::new, |part| {
            format!("; what could be written is in {}", part.display())
        });
        let hint = match error.kind() {
            io::ErrorKind::StorageFull => "; free some space, or write elsewhere",
            _ => "",
        };
        let reason = format!("{what}{error}{left}{hint}");
        Some(Error::TxOut { path: self.path.clone(), reason })
    }
}

/// What the file at `path` is called until it is whole.
pub(super) fn with_part(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".part");
    name.into()
}

#[cfg(test)]
mod tests {
    use super::super::Begin;
    use super::*;

    #[test]
    fn behind_what_could_not_be_written_one_stretch_begins() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out.sc16");
        let fate = Arc::new(Fate::default());
        let mut writer = Writer::create(&path, fate.clone()).unwrap();
        let file = writer.file.try_clone().unwrap();
        for (timestamp, follows, fails) in
            [(0, false, false), (5, true, true), (90, false, false), (95, true, false)]
        {
            // A file that is open for reading takes nothing.
            writer.file = if fails {
                File::open(with_part(&path)).unwrap()
            } else {
                file.try_clone().unwrap()
            };
            let (begin, samples) = (Begin { timestamp, rate_hz: 1e6 }, vec![[7; 4]; 5]);
            writer.write(&Chunk { begin, follows, samples, end: None });
        }
        let want = [(0, 0), (5, 90)];
        let want = want.map(|(first, timestamp)| (first, Begin { timestamp, rate_hz: 1e6 }));
        assert_eq!(writer.stretches, want.map(|(first, begin)| Stretch::new(first, begin)));
        assert_eq!((writer.written, fate.lost_samples()), (15, 5));
    }
}
