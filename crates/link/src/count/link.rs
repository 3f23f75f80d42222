//! A frame link whose frames are counted.

use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

use super::PortCounts;
use crate::LinkError;
use crate::frame::{Frame, FrameCounts, FrameLink, FrameMemory, LinkCounters, LinkInfo, Steer};

pub(super) struct CountLink {
    pub inner: Box<dyn FrameLink>,
    pub counts: PortCounts,
    /// Lengths of the parts that are to be transmitted, and whether each is the last of a frame.
    pub lengths: Vec<(usize, bool)>,
}

/// Counts each frame of a run of parts.
fn note(way: &super::DirectionCounter, parts: impl Iterator<Item = (usize, bool)>) {
    let mut whole = 0;
    for (bytes, last) in parts {
        whole += bytes;
        if last {
            way.note(std::mem::take(&mut whole));
        }
    }
}

impl FrameLink for CountLink {
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
        let before = frames.len();
        let count = self.inner.receive(frames)?;
        let parts = frames[before..].iter().map(|part| (part.len(), !part.continues()));
        note(&self.counts.received, parts);
        Ok(count)
    }

    fn give_back(&mut self, frames: &mut Vec<Frame>) {
        self.inner.give_back(frames);
    }

    fn explain(&mut self) -> Option<String> {
        self.inner.explain()
    }

    fn reserve(&mut self, frames: &mut Vec<Frame>, count: usize) -> usize {
        self.inner.reserve(frames, count)
    }

    fn transmit(&mut self, frames: &mut Vec<Frame>) -> io::Result<usize> {
        // The link removes the frames that it takes, and returns their number only then.
        self.lengths.clear();
        self.lengths.extend(frames.iter().map(|part| (part.len(), !part.continues())));
        let taken = self.inner.transmit(frames)?;
        note(&self.counts.sent, self.lengths.drain(..).take(taken));
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }

    fn poll_fd(&self) -> Option<BorrowedFd<'_>> {
        self.inner.poll_fd()
    }

    fn counters(&mut self) -> LinkCounters {
        self.inner.counters()
    }

    fn census(&self) -> FrameCounts {
        self.inner.census()
    }
}
