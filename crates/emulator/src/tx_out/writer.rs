//! The disk's end of a transmit file.

use super::meta::{CaptureSegment, meta_of, write_meta};
use super::{Begin, BurstEnd, FileOutcome};
use crate::Error;
use crate::antenna::Sc16;
use millstream_output::{Existing, OutputError, OutputFile};
use millstream_wire::chdr::SC16_LEN;
use std::io;
use std::path::Path;
use std::sync::Arc;

/// Writes the samples as they come and stores their stretches for the metadata.
pub(super) struct RecordingWriter {
    file: OutputFile,
    written: u64,
    /// The time of the next sample.
    next: Begin,
    /// The next sample begins a stretch.
    fresh: bool,
    stretches: Vec<CaptureSegment>,
    fate: Arc<FileOutcome>,
}

impl RecordingWriter {
    /// Creates the file. Its outcome is set in `fate`.
    pub fn create(path: &Path, existing: Existing, fate: Arc<FileOutcome>) -> Result<Self, Error> {
        let fail = |reason: String| Error::TxOut { path: path.to_owned(), reason };
        if path.extension().is_some_and(|extension| extension == "sigmf-meta") {
            let reason = "name the data file (.sc16 or .sigmf-data); the metadata lie beside it";
            return Err(fail(reason.to_owned()));
        }
        let create = || {
            let file = OutputFile::create(path, existing)?;
            if file.is_regular() {
                millstream_output::check(&meta_of(path), existing)?;
            }
            Ok(file)
        };
        let file = create().map_err(|error: OutputError| fail(error.reason()))?;
        let (next, stretches) = (Begin::default(), Vec::new());
        Ok(Self { file, written: 0, next, fresh: true, stretches, fate })
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
            self.fate.lose(count, self.refusal("", error));
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
    pub fn finish(mut self) {
        if !self.file.is_regular() {
            return;
        }
        let mut described = || {
            if !self.fate.is_whole() {
                return Err(None);
            }
            self.file
                .set_len(self.written * SC16_LEN as u64)
                .map_err(|error| self.refusal("", error))?;
            write_meta(self.file.path(), &self.stretches)
                .map_err(|error| self.refusal("its metadata: ", error))
        };
        if let Err(refusal) = described() {
            self.fate.lose(0, refusal);
            return;
        }
        let path = self.file.path().to_owned();
        if let Err(error) = self.file.complete() {
            self.fate.lose(0, Some(Error::TxOut { path, reason: error.reason() }));
        }
    }

    /// Returns the system's error for a failed operation, with the present state of the file.
    fn refusal(&self, what: &str, error: io::Error) -> Option<Error> {
        let left = self.file.part().map_or_else(String::new, |part| {
            format!("; what could be written is in {}", part.display())
        });
        let reason = format!("{what}{}{left}", self.file.fail(error).reason());
        Some(Error::TxOut { path: self.file.path().to_owned(), reason })
    }
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
        let mut writer = RecordingWriter::create(&path, Existing::Refuse, fate.clone()).unwrap();
        let rate_hz = 1e6;
        writer.begin(Begin { timestamp: 0, rate_hz });
        let pieces = [(None, false), (None, true), (None, false), (Some(90), true), (None, false)];
        for (timestamp, fails) in pieces {
            timestamp.into_iter().for_each(|timestamp| writer.begin(Begin { timestamp, rate_hz }));
            // No file is so long.
            let written = writer.written;
            writer.written = if fails { 1 << 60 } else { written };
            writer.write(&[[7; 4]; 5]);
            writer.written = if fails { written } else { writer.written };
        }
        let want = [(0, 0), (5, 10), (10, 95)];
        let want = want.map(|(first, timestamp)| (first, Begin { timestamp, rate_hz: 1e6 }));
        assert_eq!(writer.stretches, want.map(|(first, begin)| CaptureSegment::new(first, begin)));
        assert_eq!((writer.written, fate.lost_samples()), (15, 10));
    }
}
