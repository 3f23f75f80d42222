//! The disk's end of a transmit file.

use super::Chunk;
use super::meta::{Stretch, write_meta};
use crate::Error;
use millstream_wire::chdr::SC16_LEN;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Writes the samples as they come and remembers their stretches for the metadata.
pub(super) struct Writer {
    path: PathBuf,
    file: File,
    written: u64,
    /// The last chunk could not be written.
    broken: bool,
    stretches: Vec<Stretch>,
    failed: Arc<AtomicU64>,
}

impl Writer {
    /// Creates or empties the file. Samples that cannot be written are added to `failed`.
    pub fn create(path: &Path, failed: Arc<AtomicU64>) -> Result<Self, Error> {
        let fail = |reason: String| Error::TxOut { path: path.to_owned(), reason };
        if path.extension().is_some_and(|extension| extension == "sigmf-meta") {
            let reason = "name the data file (.sc16 or .sigmf-data); the metadata lie beside it";
            return Err(fail(reason.to_owned()));
        }
        let file = File::create(path).map_err(|error| fail(error.to_string()))?;
        let (path, stretches) = (path.to_owned(), Vec::new());
        Ok(Self { path, file, written: 0, broken: false, stretches, failed })
    }

    /// Writes one chunk.
    pub fn write(&mut self, chunk: &Chunk) {
        let samples = chunk.samples.len() as u64;
        let place = self.written * SC16_LEN as u64;
        // A piece may be there even if it fails; what follows is written over it.
        if self.file.write_all_at(chunk.samples.as_flattened(), place).is_err() {
            self.failed.fetch_add(samples, Ordering::Relaxed);
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

    /// Writes the metadata.
    pub fn finish(&mut self) {
        // The samples count, and they are there already. Beside a device file nothing is put.
        if self.path.is_file() {
            let _ = self.file.set_len(self.written * SC16_LEN as u64);
            let _ = write_meta(&self.path, &self.stretches);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Begin;
    use super::*;

    #[test]
    fn behind_what_could_not_be_written_one_stretch_begins() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out.sc16");
        let failed = Arc::new(AtomicU64::new(0));
        let mut writer = Writer::create(&path, failed.clone()).unwrap();
        let file = writer.file.try_clone().unwrap();
        for (timestamp, follows, fails) in
            [(0, false, false), (5, true, true), (90, false, false), (95, true, false)]
        {
            // A file that is open for reading takes nothing.
            writer.file =
                if fails { File::open(&path).unwrap() } else { file.try_clone().unwrap() };
            let (begin, samples) = (Begin { timestamp, rate_hz: 1e6 }, vec![[7; 4]; 5]);
            writer.write(&Chunk { begin, follows, samples, end: None });
        }
        let want = [(0, 0), (5, 90)];
        let want = want.map(|(first, timestamp)| (first, Begin { timestamp, rate_hz: 1e6 }));
        assert_eq!(writer.stretches, want.map(|(first, begin)| Stretch::new(first, begin)));
        assert_eq!((writer.written, failed.load(Ordering::Relaxed)), (15, 5));
    }
}
