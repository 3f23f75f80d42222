//! The packet link as a [`FrameLink`].

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::Duration;

use super::link::PacketLink;
use super::wake::WakeReason;
use super::{filter, socket};
use crate::LinkError;
use crate::coarse;
use crate::frame::{Frame, FrameCounts, FrameLink, FrameMemory, LinkCounters, LinkInfo, Steer};

/// The number of empty polls of the ring between two reads of the clock, for the check below.
const LOOKS_PER_CLOCK: u32 = 1024;

/// The least interval of an idle link's checks that its interface exists.
const ASK: Duration = Duration::from_millis(50);

impl FrameLink for PacketLink {
    fn info(&self) -> &LinkInfo {
        &self.info
    }

    fn memory(&self) -> &Arc<FrameMemory> {
        &self.memory
    }

    fn steer(&mut self, steer: &Steer) -> Result<(), LinkError> {
        let attached = socket::attach(self.socket.as_fd(), &filter::program(steer));
        attached.map_err(|source| LinkError::Setup { what: "SO_ATTACH_FILTER", source })
    }

    fn receive(&mut self, frames: &mut Vec<Frame>) -> io::Result<usize> {
        self.check_up()?;
        let count = self.take(frames);
        if count > 0 {
            self.idle = 0;
            return Ok(count);
        }
        self.idle = self.idle.wrapping_add(1);
        let news = self.wake.quiet(&mut self.counters.syscalls);
        if news == WakeReason::Trouble || self.is_time_to_ask() {
            self.look_for_trouble()?;
        }
        if news == WakeReason::Nothing {
            return Ok(0);
        }
        let count = self.take(frames);
        if count > 0 {
            self.counters.syscalls += 1;
            self.wake.again(self.socket.as_fd())?;
        }
        Ok(count)
    }

    fn give_back(&mut self, frames: &mut Vec<Frame>) {
        frames.drain(..).for_each(|frame| self.put(frame));
    }

    fn reserve(&mut self, frames: &mut Vec<Frame>, count: usize) -> usize {
        self.buffers.reserve(frames, count)
    }

    fn transmit(&mut self, frames: &mut Vec<Frame>) -> io::Result<usize> {
        self.check_up()?;
        let mut taken = 0;
        loop {
            let (parts, more) = self.queue_run(frames);
            taken += parts;
            if !more {
                return Ok(taken);
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        let flushed = self.transmit.flush(&mut self.sent, &mut self.done);
        self.put_done();
        self.down |= flushed.is_err();
        flushed
    }

    fn poll_fd(&self) -> Option<BorrowedFd<'_>> {
        self.wake.poll_fd(self.socket.as_fd())
    }

    fn counters(&mut self) -> LinkCounters {
        self.counters.rx_ring_full += socket::drops(self.socket.as_fd()).unwrap_or(0);
        LinkCounters {
            tx_frames: self.sent.frames,
            tx_bytes: self.sent.bytes,
            tx_invalid: self.sent.invalid,
            tx_dropped: self.sent.dropped,
            syscalls: self.counters.syscalls + self.sent.syscalls,
            ..self.counters
        }
    }

    fn explain(&mut self) -> Option<String> {
        None
    }

    fn census(&self) -> FrameCounts {
        self.count()
    }
}

impl PacketLink {
    /// Whether a check is due; it is limited to an interval, however often the link is polled.
    fn is_time_to_ask(&mut self) -> bool {
        if self.idle % LOOKS_PER_CLOCK != 0 {
            return false;
        }
        let now = coarse::now();
        let due = now >= self.next_ask;
        if due {
            self.next_ask = now + ASK;
        }
        due
    }
}
