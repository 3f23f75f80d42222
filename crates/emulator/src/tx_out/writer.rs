//! The disk's end of a transmit file.

use super::meta::{CaptureSegment, write_meta};
use super::{Begin, BurstEnd, FileOutcome};
use crate::Error;
use crate::antenna::Sc16;
use millstream_wire::chdr::SC16_LEN;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Writes the samples as they come and stores their stretches for the metadata.
pub(super) struct RecordingWriter {
    path: PathBuf,
    /// The name of the file until it is complete; `None` for a device or a pipe.
    part: Option<PathBuf>,
    file: File,
    written: u64,
    /// The time of the next sample.
    next: Begin,
    /// The next sample begins a stretch.
    fresh: bool,
    stretches: Vec<CaptureSegment>,
    fate: Arc<FileOutcome>,
}

impl RecordingWriter {
    /// Creates or empties the file. Its outcome is set in `fate`.
    pub fn create(path: &Path, fate: Arc<FileOutcome>) -> Result<Self, Error> {
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
        let next = Begin::default();
        Ok(Self { path, part, file, written: 0, next, fresh: true, stretches, fate })
    }

    /// Begins a stretch with the next samples.
    pub fn begin(&mut self, begin: Begin) {
        (self.next, self.fresh) = (begin, true);
    }

    /// Writes the next samples.
    pub fn write(&mut self, samples: &[Sc16]) {
        let count = samples.len() as u64;
        let next = self.next;
        self.next.timestamp = next.timestamp.wrapping_add(count);
        let place = self.written * SC16_LEN as u64;
        // A failed write may leave a part, which the next write overwrites.
        if let Err(error) = self.file.write_all_at(samples.as_flattened(), place) {
            self.fate.lose(count, self.refusal("", &error));
            self.fresh = true;
            return;
        }
        if count > 0 && std::mem::take(&mut self.fresh) {
            self.stretches.push(CaptureSegment::new(self.written, next));
        }
        self.written += count;
    }

    /// Ends the burst; if the samples before are missing, the place of its end is unknown.
    pub fn end(&mut self, how: BurstEnd) {
        if let (false, Some(stretch)) = (self.fresh, self.stretches.last_mut()) {
            stretch.finish(self.written, how);
        }
    }

    /// Gives the file its final name, and writes its metadata, if all was written. A device has no
    /// metadata file.
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

    /// Returns the system's error for a failed operation, with the present state of the file.
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

/// Returns the name of the file at `path` until it is complete.
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
    fn behind_what_could_not_be_written_a_stretch_begins() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out.sc16");
        let fate = Arc::new(FileOutcome::default());
        let mut writer = RecordingWriter::create(&path, fate.clone()).unwrap();
        let file = writer.file.try_clone().unwrap();
        let rate_hz = 1e6;
        writer.begin(Begin { timestamp: 0, rate_hz });
        let pieces = [(None, false), (None, true), (None, false), (Some(90), true), (None, false)];
        for (timestamp, fails) in pieces {
            // A file that is open for reading accepts no writes.
            writer.file = if fails {
                File::open(with_part(&path)).unwrap()
            } else {
                file.try_clone().unwrap()
            };
            timestamp.into_iter().for_each(|timestamp| writer.begin(Begin { timestamp, rate_hz }));
            writer.write(&[[7; 4]; 5]);
        }
        let want = [(0, 0), (5, 10), (10, 95)];
        let want = want.map(|(first, timestamp)| (first, Begin { timestamp, rate_hz: 1e6 }));
        assert_eq!(writer.stretches, want.map(|(first, begin)| CaptureSegment::new(first, begin)));
        assert_eq!((writer.written, fate.lost_samples()), (15, 10));
    }
}
