//! All samples that a channel transmits, on disk: one file of samples, with gaps only in its
//! metadata.
//!
//! The device thread puts the samples into a ring and never waits; a separate thread writes them.
//! Samples that the disk cannot take are lost and counted, and the next samples begin a new stretch
//! with their time.

mod feed;
mod meta;
mod recorder;
mod writer;

use crate::Error;
use crate::antenna::Sc16;
use feed::{BurstMark, Feed, What};
use millstream_output::Existing;
use millstream_ring::{RingOptions, Wait, Waiter, ring, spsc};
pub(crate) use recorder::Recorder;
pub use recorder::{PlayedSamples, PlayedStretch};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use writer::RecordingWriter;

/// The samples between the radio and the disk (16 MiB): a longer delay of the disk loses some.
const ROOM_SAMPLES: usize = 1 << 22;
/// The beginnings and ends of bursts between them.
const ROOM_MARKS: usize = 1 << 16;
/// The samples after which the writer is notified; it is also notified of the end of each burst.
const TOLD_SAMPLES: u64 = 1 << 14;

/// The beginning of a piece of samples.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Begin {
    /// Time of its first sample, on the host's scale.
    pub timestamp: u64,
    pub rate_hz: f64,
}

/// The kind of a burst's end, in the words of the metadata's annotation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BurstEnd {
    EndOfBurst,
    Underflow,
}

/// The outcome of a file: set by its writer thread, read by others.
#[derive(Debug, Default)]
pub(crate) struct FileOutcome {
    /// Samples that the system refused to write.
    lost: AtomicU64,
    /// The first error.
    error: OnceLock<Error>,
}

impl FileOutcome {
    /// Returns the error if the file is incomplete.
    pub fn error(&self) -> Option<&Error> {
        self.error.get()
    }

    fn is_whole(&self) -> bool {
        self.error.get().is_none()
    }

    fn lost_samples(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    /// Counts samples that could not be written; the first reason is stored.
    fn lose(&self, samples: u64, reason: Option<Error>) {
        self.lost.fetch_add(samples, Ordering::Relaxed);
        if let Some(reason) = reason {
            let _ = self.error.set(reason);
        }
    }
}

/// The device thread's end.
pub(crate) struct FileRecorder {
    samples: millstream_ring::Writer<Sc16>,
    marks: spsc::Sender<BurstMark>,
    /// The wait point of the writer's thread.
    waiter: Arc<Waiter>,
    /// The samples of which it has been notified.
    told: u64,
    /// The next samples begin a stretch.
    fresh: bool,
    lost: u64,
    fate: Arc<FileOutcome>,
    thread: Option<JoinHandle<()>>,
}

impl FileRecorder {
    /// Creates the file `path` and starts its writer.
    ///
    /// # Errors
    /// [`Error::TxOut`] when the file cannot be created, or there is no memory for the ring;
    /// [`Error::Thread`].
    pub fn create(path: &Path, existing: Existing) -> Result<Self, Error> {
        let fate = Arc::new(FileOutcome::default());
        let writer = RecordingWriter::create(path, existing, Arc::clone(&fate))?;
        let no_memory = |error| Error::TxOut { path: path.to_owned(), reason: format!("{error}") };
        let (mut recorder, mut feed) = Self::join(writer, fate).map_err(no_memory)?;
        let waiter = Arc::clone(&recorder.waiter);
        const NAME: &str = "ms-tx-out";
        let write_all = move || {
            while feed.pass() {
                waiter.wait(Wait::Park, None);
            }
            feed.finish();
        };
        let thread = std::thread::Builder::new().name(NAME.to_owned()).spawn(write_all);
        recorder.thread = Some(thread.map_err(|source| Error::Thread { name: NAME, source })?);
        Ok(recorder)
    }

    /// Returns both ends, without a thread yet.
    fn join(
        writer: RecordingWriter,
        fate: Arc<FileOutcome>,
    ) -> Result<(Self, Feed), millstream_ring::RingError> {
        let (samples, mut readers) = ring(&RingOptions::items(ROOM_SAMPLES))?;
        let reader = readers.pop().expect("one reader was asked for");
        let (marks, marked) = spsc::channel(ROOM_MARKS);
        let recorder = Self {
            samples,
            marks,
            waiter: Arc::default(),
            told: 0,
            fresh: true,
            lost: 0,
            fate,
            thread: None,
        };
        Ok((recorder, Feed::new(reader, marked, writer)))
    }

    /// Returns the outcome of the file.
    pub fn fate(&self) -> Arc<FileOutcome> {
        self.fate.clone()
    }

    /// Notifies the writer of new samples.
    fn tell(&mut self) {
        self.told = self.samples.position();
        self.waiter.notify();
    }
}

impl Recorder for FileRecorder {
    fn record(&mut self, begin: Begin, follows: bool, samples: &[Sc16]) {
        self.fresh |= !follows;
        let position = self.samples.position();
        let room = self.samples.slice_mut();
        let mut count = samples.len().min(room.len());
        if count > 0 && self.fresh {
            // There must also be space for the mark of its end.
            let mark = BurstMark { position, what: What::Begin(begin) };
            let begins = self.marks.room() >= 2 && self.marks.push(mark).is_ok();
            self.fresh = !begins;
            count = if begins { count } else { 0 };
        }
        room[..count].copy_from_slice(&samples[..count]);
        self.samples.produce(count);
        if count < samples.len() {
            self.lost += (samples.len() - count) as u64;
            self.fresh = true;
        }
        if position + count as u64 - self.told >= TOLD_SAMPLES {
            self.tell();
        }
    }

    fn end(&mut self, how: BurstEnd) {
        // If samples are missing its end is unknown.
        if !std::mem::replace(&mut self.fresh, true) {
            let end = BurstMark { position: self.samples.position(), what: What::End(how) };
            // Its space was reserved when the stretch began.
            let _ = self.marks.push(end);
        }
        self.tell();
    }

    fn flush(&mut self) {
        self.fresh = true;
        self.tell();
    }

    fn lost_samples(&self) -> u64 {
        self.lost + self.fate.lost_samples()
    }

    fn close(&mut self) {
        self.samples.close();
        self.waiter.notify();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Drop for FileRecorder {
    fn drop(&mut self) {
        self.close();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    type Pairs = Vec<(u64, u64)>;

    fn samples(first: u32, count: u32) -> Vec<Sc16> {
        (first..first + count).map(u32::to_le_bytes).collect()
    }

    fn begin(timestamp: u64) -> Begin {
        Begin { timestamp, rate_hz: 1e6 }
    }

    fn metadata(path: &Path) -> Value {
        let meta = std::fs::read(path.with_extension("sigmf-meta")).unwrap();
        serde_json::from_slice(&meta).unwrap()
    }

    /// Returns the stretches: the beginning of each in the file and in time; and for those with an
    /// end, their length.
    fn meta(path: &Path) -> (Pairs, Pairs) {
        let meta = metadata(path);
        let of = |list: &str, keys: [&str; 2]| -> Pairs {
            let number = |one: &Value, key: &str| one[key].as_u64().unwrap();
            let list = meta[list].as_array().unwrap().iter();
            list.map(|one| (number(one, keys[0]), number(one, keys[1]))).collect()
        };
        let captures = of("captures", ["core:sample_start", "core:global_index"]);
        (captures, of("annotations", ["core:sample_start", "core:sample_count"]))
    }

    #[test]
    fn the_file_holds_all_samples_and_the_metadata_the_gaps() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out.sc16");
        let mut recorder = FileRecorder::create(&path, Existing::Refuse).unwrap();
        // In pieces.
        for piece in 0..40 {
            let time = 500 + 1000 * u64::from(piece);
            recorder.record(begin(time), piece > 0, &samples(1000 * piece, 1000));
        }
        recorder.end(BurstEnd::EndOfBurst);
        recorder.record(begin(90_000), false, &samples(40_000, 3));
        recorder.end(BurstEnd::Underflow);
        recorder.close();
        assert_eq!(recorder.lost_samples(), 0);
        let want: Vec<u8> = samples(0, 40_003).concat();
        assert_eq!(std::fs::read(&path).unwrap(), want);
        let (captures, annotations) = meta(&path);
        assert_eq!(captures, [(0, 500), (40_000, 90_000)]);
        assert_eq!(annotations, [(0, 40_000), (40_000, 3)]);
        let meta = metadata(&path);
        assert_eq!(meta["global"]["core:dataset"], "out.sc16");
        assert_eq!(meta["global"]["core:sample_rate"], 1e6);
        assert_eq!(meta["annotations"][1]["core:label"], "underflow");
    }

    /// Returns a recorder whose writer is stopped.
    fn halted(path: &Path) -> (FileRecorder, Feed) {
        let fate = Arc::new(FileOutcome::default());
        let writer = RecordingWriter::create(path, Existing::Refuse, Arc::clone(&fate)).unwrap();
        FileRecorder::join(writer, fate).unwrap()
    }

    #[test]
    fn what_finds_no_room_is_lost_and_the_next_samples_have_their_own_time() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out.sc16");
        let (mut recorder, mut feed) = halted(&path);
        let room = ROOM_SAMPLES as u64;
        for piece in 0..3 {
            recorder.record(begin(1_000 + piece * room), piece > 0, &vec![[1; 4]; ROOM_SAMPLES]);
        }
        recorder.end(BurstEnd::EndOfBurst);
        assert_eq!(recorder.lost_samples(), 2 * room);
        assert!(feed.pass(), "more may come");
        recorder.record(begin(1_000 + 3 * room), true, &samples(0, 5));
        recorder.end(BurstEnd::EndOfBurst);
        recorder.close();
        assert!(!feed.pass(), "that is all");
        feed.finish();
        let (captures, annotations) = meta(&path);
        assert_eq!(captures, [(0, 1_000), (room, 1_000 + 3 * room)]);
        assert_eq!(annotations, [(room, 5)], "nobody knows where the first one ended");
        assert_eq!(std::fs::metadata(&path).unwrap().len(), 4 * (room + 5));
    }

    #[test]
    fn many_short_bursts_wait_for_a_disk_that_hangs() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out.sc16");
        let (mut recorder, mut feed) = halted(&path);
        let bursts = ROOM_MARKS as u64 / 2;
        for burst in 0..bursts {
            recorder.record(begin(100 * burst), false, &samples(burst as u32, 1));
            recorder.end(BurstEnd::EndOfBurst);
        }
        assert_eq!(recorder.lost_samples(), 0);
        recorder.record(begin(100 * bursts), false, &samples(0, 1));
        recorder.end(BurstEnd::EndOfBurst);
        assert_eq!(recorder.lost_samples(), 1, "no place is left to say where it begins");
        recorder.close();
        feed.pass();
        feed.finish();
        let (captures, annotations) = meta(&path);
        assert!(captures.into_iter().eq((0..bursts).map(|burst| (burst, 100 * burst))));
        assert!(annotations.into_iter().eq((0..bursts).map(|burst| (burst, 1))));
        assert_eq!(std::fs::read(&path).unwrap(), samples(0, bursts as u32).concat());
    }

    #[test]
    fn a_disk_that_takes_nothing_loses_samples_and_counts_them() {
        let mut recorder = FileRecorder::create(Path::new("/dev/full"), Existing::Refuse).unwrap();
        let total = 40 * TOLD_SAMPLES;
        recorder.record(begin(0), false, &vec![[1; 4]; total as usize]);
        recorder.close();
        assert_eq!(recorder.lost_samples(), total);
        let reason = recorder.fate().error().unwrap().to_string();
        assert_eq!(
            reason,
            "cannot write the transmit file /dev/full: No space left on device (os error 28); \
             free some space, or write elsewhere"
        );
    }

    #[test]
    fn a_file_that_is_not_whole_keeps_the_name_that_says_so_and_has_no_metadata() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out.sc16");
        let mut recorder = FileRecorder::create(&path, Existing::Refuse).unwrap();
        recorder.record(begin(0), false, &samples(0, 3));
        recorder.end(BurstEnd::EndOfBurst);
        // The writer finds a folder in place of its metadata file.
        std::fs::create_dir(folder.path().join("out.sigmf-meta")).unwrap();
        recorder.close();
        let reason = recorder.fate().error().unwrap().to_string();
        assert!(reason.contains("out.sc16: its metadata: is a directory"), "{reason}");
        assert!(reason.contains("what could be written is in "), "{reason}");
        assert!(!path.exists());
        let part = std::fs::read(folder.path().join("out.sc16.part")).unwrap();
        assert_eq!(part, samples(0, 3).concat());
        let left: Vec<_> = std::fs::read_dir(folder.path()).unwrap().collect();
        assert_eq!(left.len(), 2, "{left:?}");
    }

    #[test]
    fn a_file_that_cannot_be_had_is_an_error_with_its_name() {
        let text = FileRecorder::create(Path::new("/nowhere/x.sc16"), Existing::Refuse)
            .err()
            .unwrap()
            .to_string();
        assert!(
            text.contains("cannot write the transmit file /nowhere/x.sc16: No such file"),
            "{text}"
        );
        let text = FileRecorder::create(Path::new("x.sigmf-meta"), Existing::Refuse)
            .err()
            .unwrap()
            .to_string();
        assert!(text.contains("name the data file"), "{text}");
    }
}
