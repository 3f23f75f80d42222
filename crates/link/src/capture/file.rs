//! The thread that writes a capture: it takes what the taps have left, oldest first.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use millstream_ring::Reader;

use super::now_ns;
use super::tap::Counts;
use crate::pcapng::{self, Statistics};

/// How often it looks. Taps never wake it: that would be a system call in their path.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// A file that is being written, until the last tap has ended.
#[derive(Debug)]
pub(super) struct Writing(Option<JoinHandle<()>>);

impl Writing {
    /// Begins a file; its thread ends with the taps behind `readers`.
    pub fn begin(
        file: File,
        interface: &str,
        readers: Vec<Reader<u8>>,
        counts: Arc<Counts>,
    ) -> std::io::Result<Self> {
        let mut file = BufWriter::with_capacity(1 << 18, file);
        file.write_all(&pcapng::head(interface))?;
        let writer = Writer { file, readers, counts, failed: false };
        let thread = thread::Builder::new().name("ms-capture".to_owned());
        Ok(Self(Some(thread.spawn(|| writer.run())?)))
    }
}

impl Drop for Writing {
    fn drop(&mut self) {
        let _ = self.0.take().map(JoinHandle::join);
    }
}

struct Writer {
    file: BufWriter<File>,
    readers: Vec<Reader<u8>>,
    counts: Arc<Counts>,
    /// The disk refused something: what follows would not be readable.
    failed: bool,
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
            // So that whoever looks into the file meanwhile sees what there is.
            self.failed |= self.file.flush().is_err();
            thread::sleep(LOOK_EVERY);
        }
        let count = |count: &std::sync::atomic::AtomicU64| count.load(Ordering::Relaxed);
        let seen = Statistics {
            received: count(&self.counts.received),
            lost: count(&self.counts.lost),
            uncaptured: count(&self.counts.uncaptured),
        };
        if !self.failed {
            let _ = self.file.write_all(&pcapng::statistics(now_ns(), seen));
            let _ = self.file.flush();
        }
    }

    /// Writes the blocks that are there now, the older ones first; false if there were none.
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
            let block = &self.readers[index].slice()[at..at + bytes];
            if !self.failed && self.file.write_all(block).is_err() {
                self.failed = true;
            }
            self.counts.uncaptured.fetch_add(u64::from(self.failed), Ordering::Relaxed);
            ends[index].0 += bytes;
            any = true;
        }
        for (reader, end) in self.readers.iter_mut().zip(ends) {
            reader.consume(end.0);
        }
        any
    }
}
