//! From the ring to the file.

use super::writer::RecordingWriter;
use super::{Begin, BurstEnd};
use crate::antenna::Sc16;
use millstream_ring::{Reader, spsc};

/// A beginning or end between two samples.
pub(super) struct BurstMark {
    /// Samples before it, since the start.
    pub position: u64,
    pub what: What,
}

pub(super) enum What {
    /// The next sample begins a stretch.
    Begin(Begin),
    /// The burst ends here.
    End(BurstEnd),
}

/// The writer's end of the ring.
pub(super) struct Feed {
    samples: Reader<Sc16>,
    marks: spsc::Receiver<BurstMark>,
    /// The first mark that has not been reached.
    next: Option<BurstMark>,
    writer: RecordingWriter,
}

impl Feed {
    pub fn new(
        samples: Reader<Sc16>,
        marks: spsc::Receiver<BurstMark>,
        writer: RecordingWriter,
    ) -> Self {
        Self { samples, marks, next: None, writer }
    }

    /// Writes all available samples. Returns false at the end.
    pub fn pass(&mut self) -> bool {
        loop {
            let mut position = self.samples.position();
            let mut rest = self.samples.slice();
            let (count, ended) = (rest.len(), self.samples.is_ended());
            // A beginning is in the ring before its samples, and the search comes after them.
            loop {
                self.next = self.next.take().or_else(|| self.marks.pop());
                let end = position + rest.len() as u64;
                let Some(mark) = self.next.take_if(|mark| mark.position <= end) else { break };
                let (before, behind) = rest.split_at((mark.position - position) as usize);
                self.writer.write(before);
                match mark.what {
                    What::Begin(begin) => self.writer.begin(begin),
                    What::End(how) => self.writer.end(how),
                }
                (position, rest) = (mark.position, behind);
            }
            self.writer.write(rest);
            self.samples.consume(count);
            if count == 0 || ended {
                return !ended;
            }
        }
    }

    /// Gives the file its final name after the last sample.
    pub fn finish(self) {
        self.writer.finish();
    }
}
