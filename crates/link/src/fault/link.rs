//! A frame link behind fault switches, one for each direction.

use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

use super::side::FaultDirection;
use super::switch::FaultSwitch;
use crate::LinkError;
use crate::frame::{Frame, FrameCounts, FrameLink, FrameMemory, LinkCounters, LinkInfo, Steer};

/// A frame link with faults. Its delayed frames count as being with the kernel.
pub(super) struct FaultLink {
    inner: Box<dyn FrameLink>,
    info: LinkInfo,
    received: FaultDirection,
    sent: FaultDirection,
    incoming: Vec<Frame>,
}

impl FaultLink {
    pub fn new(inner: Box<dyn FrameLink>, received: FaultSwitch, sent: FaultSwitch) -> Self {
        let batch = inner.info().batch_max;
        // The link lacks the delayed frames, and needs some to go on.
        let held = inner.census().total() / 4;
        let side = |switch| FaultDirection::new(switch, batch, held);
        let (received, sent) = (side(received), side(sent));
        // Damage must be detectable: checksums are computed before it is done.
        let info = LinkInfo { completes_checksums: false, ..inner.info().clone() };
        Self { inner, info, received, sent, incoming: Vec::with_capacity(batch) }
    }

    /// Sends the frames that are due, as far as the link takes them.
    fn push(&mut self) -> io::Result<()> {
        if self.sent.is_empty() {
            return Ok(());
        }
        self.sent.release(self.sent.switch.now_ns());
        while !self.sent.ready.is_empty() && self.inner.transmit(&mut self.sent.ready)? > 0 {}
        Ok(())
    }

    /// Moves whole frames that are ready to `frames`, a batch at most; returns the number of parts.
    fn lend(&mut self, frames: &mut Vec<Frame>) -> usize {
        let ready = &mut self.received.ready;
        let mut count = ready.len().min(self.inner.info().batch_max);
        while count > 0 && ready[count - 1].continues() {
            count -= 1;
        }
        frames.extend(ready.drain(..count));
        count
    }
}

impl FrameLink for FaultLink {
    fn info(&self) -> &LinkInfo {
        &self.info
    }

    fn memory(&self) -> &Arc<FrameMemory> {
        self.inner.memory()
    }

    fn steer(&mut self, steer: &Steer) -> Result<(), LinkError> {
        self.inner.steer(steer)
    }

    fn receive(&mut self, frames: &mut Vec<Frame>) -> io::Result<usize> {
        if !self.sent.is_empty() {
            // There may be no other call before a frame arrives. Errors show at the next transmit.
            let _ = self.flush();
        }
        if self.received.is_idle() {
            return self.inner.receive(frames);
        }
        self.received.release(self.received.switch.now_ns());
        // A link whose frames are all delayed is polled all the same, because it may be down. But a
        // user for whom a batch is ready takes that first, or copies would pile up.
        let mut looked = Ok(0);
        if self.received.ready.len() < self.inner.info().batch_max {
            looked = self.inner.receive(&mut self.incoming);
            self.received.judge(&mut *self.inner, self.incoming.drain(..));
        }
        let count = self.lend(frames);
        match looked {
            Err(error) if count == 0 => Err(error),
            _ => Ok(count),
        }
    }

    fn give_back(&mut self, frames: &mut Vec<Frame>) {
        self.inner.give_back(frames);
    }

    fn reserve(&mut self, frames: &mut Vec<Frame>, count: usize) -> usize {
        self.inner.reserve(frames, count)
    }

    fn transmit(&mut self, frames: &mut Vec<Frame>) -> io::Result<usize> {
        if self.sent.is_idle() {
            return self.inner.transmit(frames);
        }
        self.push()?;
        let (batch, mut taken) = (self.inner.info().batch_max, 0);
        while self.sent.ready.is_empty() && !frames.is_empty() {
            let mut count = frames.len().min(batch);
            // Whole frames only, unless the end of the last one is missing.
            count += frames[count - 1..].iter().take_while(|part| part.continues()).count();
            let count = count.min(frames.len());
            self.sent.judge(&mut *self.inner, frames.drain(..count));
            taken += count;
            self.push()?;
        }
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        loop {
            self.push()?;
            self.inner.flush()?;
            // Frames for which the link had no room before; or it cannot take more now.
            let left = self.sent.ready.len();
            if left == 0 {
                return Ok(());
            }
            self.push()?;
            if self.sent.ready.len() == left {
                return Ok(());
            }
        }
    }

    fn poll_fd(&self) -> Option<BorrowedFd<'_>> {
        // Delayed frames are released by the clock, which a descriptor cannot show.
        let quiet = self.received.is_empty() && self.sent.is_empty();
        self.inner.poll_fd().filter(|_| quiet)
    }

    fn counters(&mut self) -> LinkCounters {
        let (received, sent) = (self.received.done, self.sent.done);
        let mut counters = self.inner.counters();
        counters.fault_lost += received.lost + sent.lost;
        counters.fault_added += received.added + sent.added;
        counters
    }

    fn explain(&mut self) -> Option<String> {
        let lost = self.received.done.lost + self.sent.done.lost;
        let faults = (lost > 0).then(|| format!("injected faults lost {lost} frames"));
        let told: Vec<_> = faults.into_iter().chain(self.inner.explain()).collect();
        (!told.is_empty()).then(|| told.join("; "))
    }

    fn census(&self) -> FrameCounts {
        let inner = self.inner.census();
        let (receiving, transmitting) = (self.received.parts(), self.sent.parts());
        FrameCounts {
            receiving: inner.receiving + receiving,
            transmitting: inner.transmitting + transmitting,
            lent: inner.lent - receiving - transmitting,
            ..inner
        }
    }
}
