//! Everything a channel transmits, on disk: one file of samples, gaps only in its metadata.
//!
//! The device thread fills chunks and never waits; a thread of its own writes them. What the disk
//! cannot take is lost and counted, and the next samples begin a new stretch with their time.

mod meta;
mod writer;

use crate::Error;
use crate::antenna::Sc16;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use writer::Writer;

/// Samples that change hands at once.
const CHUNK_SAMPLES: usize = 1 << 14;
/// Chunks there are (16 MiB): a longer hiccup of the disk loses samples.
const CHUNKS: usize = 256;

/// When a piece of samples begins.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Begin {
    /// Time of its first sample, as the host sees it.
    pub timestamp: u64,
    pub rate_hz: f64,
}

/// How a burst ended, in the words of the metadata's annotation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    EndOfBurst,
    Underflow,
}

/// Samples on their way to the writer.
#[derive(Debug, Default)]
struct Chunk {
    begin: Begin,
    /// Nothing is missing between the chunk before and this one.
    follows: bool,
    samples: Vec<Sc16>,
    end: Option<End>,
}

/// What became of a file: told by the thread that writes it, asked by others.
#[derive(Debug, Default)]
pub(crate) struct Fate {
    /// Samples that the system refused to write.
    lost: AtomicU64,
    /// The first reason why.
    error: OnceLock<Error>,
}

impl Fate {
    /// Why the file is not whole, if it is not.
    pub fn error(&self) -> Option<&Error> {
        self.error.get()
    }

    fn is_whole(&self) -> bool {
        self.error.get().is_none()
    }

    fn lost_samples(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    /// Samples could not be written; the first reason is kept.
    fn lose(&self, samples: u64, reason: Option<Error>) {
        self.lost.fetch_add(samples, Ordering::Relaxed);
        if let Some(reason) = reason {
            let _ = self.error.set(reason);
        }
    }
}

/// The device thread's end.
pub(crate) struct Recorder {
    full: Option<SyncSender<Chunk>>,
    empty: Receiver<Chunk>,
    chunk: Option<Chunk>,
    /// Samples are missing before the next one.
    broken: bool,
    lost: u64,
    fate: Arc<Fate>,
    thread: Option<JoinHandle<()>>,
}

impl Recorder {
    /// Creates the file `path` and begins to write.
    ///
    /// # Errors
    /// [`Error::TxOut`] when the file cannot be created, [`Error::Thread`].
    pub fn create(path: &Path) -> Result<Self, Error> {
        let fate = Arc::new(Fate::default());
        let mut writer = Writer::create(path, fate.clone())?;
        let (full, full_rx) = sync_channel(CHUNKS);
        let (empty_tx, empty) = channel();
        for _ in 0..CHUNKS {
            let _ = empty_tx
                .send(Chunk { samples: Vec::with_capacity(CHUNK_SAMPLES), ..Chunk::default() });
        }
        const NAME: &str = "ms-tx-out";
        let thread = std::thread::Builder::new()
            .name(NAME.to_owned())
            .spawn(move || write_all(&mut writer, &full_rx, &empty_tx))
            .map_err(|source| Error::Thread { name: NAME, source })?;
        Ok(Self {
            full: Some(full),
            empty,
            chunk: None,
            broken: true,
            lost: 0,
            fate,
            thread: Some(thread),
        })
    }

    /// Takes samples that follow the last ones if `follows` is set; otherwise they begin a stretch.
    pub fn record(&mut self, begin: Begin, follows: bool, samples: &[Sc16]) {
        let (mut begin, mut rest) = (begin, samples);
        if !follows {
            self.flush();
        }
        while !rest.is_empty() {
            if self.chunk.as_ref().is_some_and(|chunk| chunk.samples.len() == CHUNK_SAMPLES) {
                self.hand_over(None);
            }
            let Some(chunk) = self.chunk.take().or_else(|| self.fresh(begin)) else {
                self.lost += rest.len() as u64;
                self.broken = true;
                return;
            };
            let chunk = self.chunk.insert(chunk);
            let room = CHUNK_SAMPLES - chunk.samples.len();
            let (now, later) = rest.split_at(room.min(rest.len()));
            chunk.samples.extend_from_slice(now);
            begin.timestamp = begin.timestamp.wrapping_add(now.len() as u64);
            rest = later;
        }
    }

    /// The burst is over: what there is of it goes to the disk.
    pub fn end(&mut self, end: End) {
        self.hand_over(Some(end));
    }

    /// Hands over what there is; nothing will follow it.
    pub fn flush(&mut self) {
        self.hand_over(None);
        self.broken = true;
    }

    /// Samples so far that are missing in the file.
    pub fn lost_samples(&self) -> u64 {
        self.lost + self.fate.lost_samples()
    }

    /// What becomes of the file.
    pub fn fate(&self) -> Arc<Fate> {
        self.fate.clone()
    }

    /// Waits until everything is written, metadata included.
    pub fn close(&mut self) {
        self.hand_over(None);
        self.full = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }

    /// An empty chunk for samples that begin or go on at `begin`.
    fn fresh(&mut self, begin: Begin) -> Option<Chunk> {
        let mut chunk = self.empty.try_recv().ok()?;
        chunk.samples.clear();
        chunk.begin = begin;
        chunk.follows = !std::mem::take(&mut self.broken);
        chunk.end = None;
        Some(chunk)
    }

    fn hand_over(&mut self, end: Option<End>) {
        let Some(mut chunk) = self.chunk.take() else { return };
        chunk.end = end;
        let samples = chunk.samples.len() as u64;
        // There is room for all chunks; the other end ends after this one.
        let sent = self.full.as_ref().is_some_and(|full| full.try_send(chunk).is_ok());
        if !sent {
            self.lost += samples;
            self.broken = true;
        }
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.close();
    }
}

/// The body of the writer's thread: ends when the recorder does.
fn write_all(writer: &mut Writer, full: &Receiver<Chunk>, empty: &Sender<Chunk>) {
    while let Ok(chunk) = full.recv() {
        writer.write(&chunk);
        // Nobody needs it once the recorder is gone.
        let _ = empty.send(chunk);
    }
    writer.finish();
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    fn samples(first: u32, count: u32) -> Vec<Sc16> {
        (first..first + count).map(u32::to_le_bytes).collect()
    }

    fn begin(timestamp: u64) -> Begin {
        Begin { timestamp, rate_hz: 1e6 }
    }

    #[test]
    fn the_file_holds_all_samples_and_the_metadata_the_gaps() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out.sc16");
        let mut recorder = Recorder::create(&path).unwrap();
        // More than a chunk, in pieces.
        for piece in 0..40 {
            let time = 500 + 1000 * u64::from(piece);
            recorder.record(begin(time), piece > 0, &samples(1000 * piece, 1000));
        }
        recorder.end(End::EndOfBurst);
        recorder.record(begin(90_000), false, &samples(40_000, 3));
        recorder.end(End::Underflow);
        recorder.close();
        assert_eq!(recorder.lost_samples(), 0);
        let want: Vec<u8> = samples(0, 40_003).concat();
        assert_eq!(std::fs::read(&path).unwrap(), want);
        let meta = std::fs::read(folder.path().join("out.sigmf-meta")).unwrap();
        let meta: Value = serde_json::from_slice(&meta).unwrap();
        assert_eq!(meta["global"]["core:dataset"], "out.sc16");
        assert_eq!(meta["global"]["core:sample_rate"], 1e6);
        let of = |list: &str, key: &str| -> Vec<u64> {
            let list = meta[list].as_array().unwrap().iter();
            list.map(|one| one[key].as_u64().unwrap()).collect()
        };
        assert_eq!(of("captures", "core:sample_start"), [0, 40_000]);
        assert_eq!(of("captures", "core:global_index"), [500, 90_000]);
        assert_eq!(of("annotations", "core:sample_count"), [40_000, 3]);
        assert_eq!(meta["annotations"][1]["core:label"], "underflow");
    }

    #[test]
    fn what_finds_no_chunk_is_lost_and_the_next_samples_have_their_own_time() {
        let (full, full_rx) = sync_channel(2);
        let (empty_tx, empty) = channel();
        let give = |chunk| empty_tx.send(chunk).unwrap();
        (0..2).for_each(|_| give(Chunk::default()));
        let (full, fate) = (Some(full), Arc::default());
        let mut recorder =
            Recorder { full, empty, chunk: None, broken: true, lost: 0, fate, thread: None };
        let chunk = CHUNK_SAMPLES as u64;
        recorder.record(begin(1_000), false, &samples(0, 3 * CHUNK_SAMPLES as u32));
        assert_eq!(recorder.lost_samples(), chunk);
        let written: Vec<Chunk> = full_rx.try_iter().collect();
        let seen = |chunk: &Chunk| (chunk.begin.timestamp, chunk.follows);
        let seen: Vec<_> = written.iter().map(seen).collect();
        assert_eq!(seen, [(1_000, false), (1_000 + chunk, true)]);
        written.into_iter().for_each(give);
        recorder.record(begin(1_000 + 3 * chunk), true, &samples(0, 5));
        recorder.end(End::EndOfBurst);
        let last = full_rx.recv().unwrap();
        assert_eq!((last.begin.timestamp, last.follows), (1_000 + 3 * chunk, false));
        assert_eq!((last.samples.len(), last.end), (5, Some(End::EndOfBurst)));
    }

    #[test]
    fn a_disk_that_takes_nothing_loses_samples_and_counts_them() {
        let mut recorder = Recorder::create(Path::new("/dev/full")).unwrap();
        let total = 40 * CHUNK_SAMPLES as u64;
        recorder.record(begin(0), false, &vec![[1; 4]; total as usize]);
        recorder.close();
        assert_eq!(recorder.lost_samples(), total);
        let reason = recorder.fate().error().unwrap().to_string();
        assert_eq!(
            reason,
            "transmit file /dev/full: No space left on device (os error 28); \
             free some space, or write elsewhere"
        );
    }

    #[test]
    fn a_file_that_is_not_whole_keeps_the_name_that_says_so_and_has_no_metadata() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out.sc16");
        let mut recorder = Recorder::create(&path).unwrap();
        recorder.record(begin(0), false, &samples(0, 3));
        recorder.end(End::EndOfBurst);
        // What its writer finds when it is to put the metadata there: a folder of that name.
        std::fs::create_dir(folder.path().join("out.sigmf-meta")).unwrap();
        recorder.close();
        let reason = recorder.fate().error().unwrap().to_string();
        assert!(reason.contains("out.sc16: its metadata: Is a directory"), "{reason}");
        assert!(reason.contains("what could be written is in "), "{reason}");
        assert!(!path.exists());
        let part = std::fs::read(folder.path().join("out.sc16.part")).unwrap();
        assert_eq!(part, samples(0, 3).concat());
        let left: Vec<_> = std::fs::read_dir(folder.path()).unwrap().collect();
        assert_eq!(left.len(), 2, "{left:?}");
    }

    #[test]
    fn a_file_that_cannot_be_had_is_an_error_with_its_name() {
        let text = Recorder::create(Path::new("/nowhere/x.sc16")).err().unwrap().to_string();
        assert!(text.contains("transmit file /nowhere/x.sc16: No such file"), "{text}");
        let text = Recorder::create(Path::new("x.sigmf-meta")).err().unwrap().to_string();
        assert!(text.contains("name the data file"), "{text}");
    }
}
