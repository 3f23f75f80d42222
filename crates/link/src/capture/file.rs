//! The thread that writes a capture: it takes the packets that the taps have left, oldest first.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use millstream_ring::Reader;

use super::now_ns;
use super::place::CaptureFile;
use super::tap::CaptureCounts;
use crate::pcapng::{self, CaptureStatistics, ETHERNET};

/// The thread's poll interval. Taps never wake it, because that would be a system call in their
/// path.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// A file that is being written, until the last tap has ended.
#[derive(Debug)]
pub(super) struct Writing {
    thread: Option<JoinHandle<()>>,
    path: String,
    counts: Arc<CaptureCounts>,
}

impl Writing {
    /// Begins a file; its thread ends with the taps behind `readers`.
    pub fn begin(
        path: &str,
        interface: &str,
        readers: Vec<Reader<u8>>,
        counts: &Arc<CaptureCounts>,
    ) -> io::Result<Self> {
        let (file, place) = CaptureFile::open(path)?;
        let mut file = BufWriter::with_capacity(1 << 18, file);
        let mut total = place.start;
        if place.needs_head {
            let head = [pcapng::section(), pcapng::interface(interface, ETHERNET)].concat();
            file.write_all(&head)?;
            file.flush()?;
            total += head.len() as u64;
        }
        let whole = total;
        let writer =
            Writer { file, place, readers, counts: Arc::clone(counts), buffered: 0, total, whole };
        let thread = thread::Builder::new().name("ms-capture".to_owned());
        let thread = Some(thread.spawn(|| writer.run())?);
        Ok(Self { thread, path: path.to_owned(), counts: Arc::clone(counts) })
    }

    /// Returns the problem so far, for people.
    pub fn explain(&self) -> Option<String> {
        self.counts.explain(&self.path)
    }
}

impl Drop for Writing {
    fn drop(&mut self) {
        let _ = self.thread.take().map(JoinHandle::join);
        // Ports have no counter for it, and there is no port any more that could report it.
        if let Some(text) = self.explain() {
            eprintln!("{text}");
        }
    }
}

struct Writer {
    file: BufWriter<File>,
    place: CaptureFile,
    readers: Vec<Reader<u8>>,
    counts: Arc<CaptureCounts>,
    /// Packets that may not have reached the disk yet.
    buffered: u64,
    /// Bytes of the file so far, with those in the buffer, unless others write it too.
    total: u64,
    /// Those that the system has taken: whole blocks.
    whole: u64,
}

impl Writer {
    fn run(mut self) {
        loop {
            let over = self.readers.iter().all(Reader::is_ended);
            if self.take() {
                continue;
            }
            if over {
                break;
            }
            // For programs that read the file meanwhile.
            self.write(Write::flush);
            self.buffered = 0;
            thread::sleep(LOOK_EVERY);
        }
        let count = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let seen = CaptureStatistics {
            received: Some(count(&self.counts.received)),
            lost: Some(count(&self.counts.lost)),
            uncaptured: count(&self.counts.uncaptured),
        };
        let end = pcapng::statistics(0, now_ns(), seen);
        self.total += end.len() as u64;
        self.write(|file| file.write_all(&end));
        self.write(Write::flush);
        if self.counts.failure.get().is_some() {
            // The rest of the buffer would be tried once more, in vain. The part of it that had
            // room would end inside a block; a pipe cannot be shortened, nor a file of others.
            let (file, _) = self.file.into_parts();
            if self.place.is_alone() {
                let _ = file.set_len(self.whole);
            }
        }
    }

    /// Performs a step on the file, unless a write has already failed: later data would not be
    /// readable.
    fn write(&mut self, step: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>) {
        if self.counts.failure.get().is_none() {
            match step(&mut self.file) {
                Ok(()) => self.note_taken(),
                Err(error) => self.fail(error),
            }
        }
    }

    /// Notes what the system has taken: the buffer is only written as a whole.
    fn note_taken(&mut self) {
        self.whole = self.total.saturating_sub(self.file.buffer().len() as u64);
    }

    /// Records that a write has failed, and with it the rest of the buffer.
    fn fail(&self, error: io::Error) {
        self.counts.uncaptured.fetch_add(self.buffered, Ordering::Relaxed);
        // There was no failure before: nothing is written after the first.
        let _ = self.counts.failure.set(error);
    }

    /// Writes the block of a packet that lies at the front of a reader's ring.
    fn write_packet(&mut self, index: usize, from: usize, bytes: usize) {
        let block = &self.readers[index].slice()[from..from + bytes];
        let before = self.file.buffer().len();
        match self.file.write_all(block) {
            Ok(()) => {
                let is_behind = self.file.buffer().len() == before + bytes;
                // Without room behind the buffered data, that has now been written.
                let others = if is_behind { self.buffered } else { 0 };
                self.buffered = others + u64::from(!self.file.buffer().is_empty());
                self.total += bytes as u64;
                self.note_taken();
            }
            Err(error) => {
                self.buffered += 1;
                self.fail(error);
            }
        }
    }

    /// Writes the available blocks, the older ones first; returns false if there were none.
    fn take(&mut self) -> bool {
        let mut ends: [(usize, usize); 2] = [(0, 0); 2];
        for (end, reader) in ends.iter_mut().zip(&self.readers) {
            end.1 = reader.slice().len();
        }
        let mut any = false;
        loop {
            let next =
                self.readers.iter().zip(&ends).enumerate().filter_map(|(index, (reader, end))| {
                    let block = &reader.slice()[end.0..end.1];
                    pcapng::stamp_ns(block).map(|(at_ns, bytes)| (at_ns, index, bytes))
                });
            let Some((_, index, bytes)) = next.min() else { break };
            let at = ends[index].0;
            if self.counts.failure.get().is_none() {
                self.write_packet(index, at, bytes);
            } else {
                self.counts.uncaptured.fetch_add(1, Ordering::Relaxed);
            }
            ends[index].0 += bytes;
            any = true;
        }
        for (reader, end) in self.readers.iter_mut().zip(ends) {
            reader.consume(end.0);
        }
        any
    }
}
