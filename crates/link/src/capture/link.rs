//! A frame link whose frames are captured.

use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::file::Writing;
use super::now_ns;
use super::tap::{CaptureCounts, CapturePosition, CaptureWriter};
use crate::LinkError;
use crate::frame::{Frame, FrameCounts, FrameLink, FrameMemory, LinkCounters, LinkInfo, Steer};
use crate::pcapng::FrameDirection;

pub(super) struct CaptureLink {
    inner: Box<dyn FrameLink>,
    /// Declared before the file, which is complete only when its taps have ended.
    pub tap: Option<CaptureWriter>,
    pub counts: Arc<CaptureCounts>,
    pub writing: Option<Writing>,
    /// The position of the tap after each frame that is to be transmitted, by its last part.
    marks: Vec<(usize, CapturePosition)>,
}

impl CaptureLink {
    pub fn new(
        inner: Box<dyn FrameLink>,
        tap: CaptureWriter,
        counts: Arc<CaptureCounts>,
        writing: Writing,
    ) -> Self {
        let marks = Vec::with_capacity(inner.info().batch_max);
        Self { inner, tap: Some(tap), counts, writing: Some(writing), marks }
    }
}

/// Copies the frame at the front of `frames`; returns the number of its parts.
fn stage(
    tap: &mut CaptureWriter,
    memory: &FrameMemory,
    at_ns: u64,
    direction: FrameDirection,
    frames: &[Frame],
) -> (usize, CapturePosition) {
    let last = frames.iter().position(|part| !part.continues());
    let parts = &frames[..last.map_or(frames.len(), |last| last + 1)];
    let bytes: usize = parts.iter().map(Frame::len).sum();
    let first = memory.bytes(&parts[0]);
    let rest = parts[1..].iter().map(|part| memory.bytes(part));
    // A tag that the kernel removed is inserted again, so that the capture shows the frame on the
    // wire.
    let mark = match parts[0].vlan().filter(|_| first.len() >= 12) {
        Some(tag) => {
            let [upper, lower] = tag.to_be_bytes();
            let tag = [0x81, 0, upper, lower];
            let head = [&first[..12], &tag, &first[12..]].into_iter();
            tap.stage(at_ns, direction, bytes + tag.len(), head.chain(rest))
        }
        None => tap.stage(at_ns, direction, bytes, std::iter::once(first).chain(rest)),
    };
    (parts.len(), mark)
}

impl FrameLink for CaptureLink {
    fn info(&self) -> &LinkInfo {
        self.inner.info()
    }

    fn memory(&self) -> &Arc<FrameMemory> {
        self.inner.memory()
    }

    fn steer(&mut self, steer: &Steer) -> Result<(), LinkError> {
        self.inner.steer(steer)
    }

    fn receive(&mut self, frames: &mut Vec<Frame>) -> io::Result<usize> {
        let mut at = frames.len();
        let count = self.inner.receive(frames)?;
        if let Some(tap) = self.tap.as_mut().filter(|_| count > 0) {
            let (now_ns, mut mark) = (now_ns(), CapturePosition::default());
            while at < frames.len() {
                let memory = self.inner.memory();
                let (parts, after) = stage(tap, memory, now_ns, FrameDirection::In, &frames[at..]);
                (at, mark) = (at + parts, after);
            }
            tap.commit(mark);
        }
        Ok(count)
    }

    fn give_back(&mut self, frames: &mut Vec<Frame>) {
        self.inner.give_back(frames);
    }

    fn explain(&mut self) -> Option<String> {
        self.writing.as_ref().and_then(Writing::explain).or_else(|| self.inner.explain())
    }

    fn reserve(&mut self, frames: &mut Vec<Frame>, count: usize) -> usize {
        self.inner.reserve(frames, count)
    }

    fn transmit(&mut self, frames: &mut Vec<Frame>) -> io::Result<usize> {
        // The link removes the frames that it takes, and returns their number only then.
        self.marks.clear();
        if let Some(tap) = self.tap.as_mut().filter(|_| !frames.is_empty()) {
            let (now_ns, mut at) = (now_ns(), 0);
            while at < frames.len() {
                let memory = self.inner.memory();
                let (parts, mark) = stage(tap, memory, now_ns, FrameDirection::Out, &frames[at..]);
                at += parts;
                self.marks.push((at, mark));
            }
        }
        let taken = self.inner.transmit(frames);
        if let Some(tap) = &mut self.tap {
            let count = *taken.as_ref().unwrap_or(&0);
            let last = self.marks.iter().rev().find(|(end, _)| *end <= count);
            tap.commit(last.map_or(CapturePosition::default(), |(_, mark)| *mark));
        }
        taken
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }

    fn poll_fd(&self) -> Option<BorrowedFd<'_>> {
        self.inner.poll_fd()
    }

    fn counters(&mut self) -> LinkCounters {
        let uncaptured = self.counts.uncaptured.load(Ordering::Relaxed);
        LinkCounters { uncaptured, ..self.inner.counters() }
    }

    fn census(&self) -> FrameCounts {
        self.inner.census()
    }
}

impl Drop for CaptureLink {
    fn drop(&mut self) {
        let seen = self.inner.counters();
        let lost = seen.rx_ring_full + seen.rx_starved + seen.rx_dropped;
        self.counts.received.store(seen.rx_frames, Ordering::Relaxed);
        self.counts.lost.store(lost, Ordering::Relaxed);
        drop(self.tap.take());
        drop(self.writing.take());
    }
}
