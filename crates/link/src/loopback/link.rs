//! One end: a frame link whose device is the other end's memory.

use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::cable::{Bell, Cable};
use super::hand_over::{Entry, Giver, Taker};
use crate::LinkError;
use crate::buffers::Buffers;
use crate::frame::{Census, Frame, FrameLink, FrameMemory, LinkCounters, LinkInfo, Steer};

/// What an end needs to receive: its slots come filled and go back empty.
#[derive(Debug)]
pub(super) struct Receive {
    pub filled: Taker,
    pub empty: Giver,
    pub slots: usize,
    pub slot_bytes: u32,
    /// Frames that found no empty slot, counted by the sender.
    pub lost: Arc<AtomicU64>,
    pub bell: Arc<Bell>,
}

/// What an end needs to send: the receiver's empty slots, and the memory they lie in.
#[derive(Debug)]
pub(super) struct Transmit {
    pub filled: Giver,
    pub empty: Taker,
    pub slot_bytes: u32,
    pub memory: Arc<FrameMemory>,
    pub lost: Arc<AtomicU64>,
    pub bell: Arc<Bell>,
}

/// One end of a loop or a pair.
#[derive(Debug)]
pub struct LoopLink {
    pub(super) info: LinkInfo,
    pub(super) memory: Arc<FrameMemory>,
    pub(super) receive: Receive,
    pub(super) transmit: Transmit,
    pub(super) buffers: Buffers,
    pub(super) cable: Cable,
    /// A frame for which there is no slot waits instead of being lost.
    pub(super) keep: bool,
    pub(super) counters: LinkCounters,
    /// Slots lent to the user.
    pub(super) lent: usize,
}

impl LoopLink {
    /// Lends what has come, whole frames as far as a batch has room.
    fn lend(&mut self, frames: &mut Vec<Frame>) -> usize {
        let available = self.receive.filled.available().min(self.info.batch_max);
        let mut count = 0;
        while count < available {
            let mut parts = 1;
            while self.receive.filled.peek(parts - 1).continues {
                parts += 1;
                if count + parts > available {
                    return count;
                }
            }
            for _ in 0..parts {
                let Some(entry) = self.receive.filled.take() else { return count };
                frames.push(self.frame(entry));
                self.counters.rx_bytes += u64::from(entry.bytes);
            }
            count += parts;
            self.lent += parts;
            self.counters.rx_frames += 1;
        }
        count
    }

    fn frame(&self, entry: Entry) -> Frame {
        let Receive { slot_bytes, .. } = self.receive;
        let at = u64::from(entry.slot) * u64::from(slot_bytes);
        // SAFETY: the sender has handed the slot over, and has forgotten it.
        let mut frame = unsafe { Frame::new(&self.memory, at, entry.bytes, slot_bytes, 0) };
        frame.set_continues(entry.continues);
        frame
    }

    /// Copies one frame into empty slots of the other end; false if there were too few.
    fn carry(&mut self, parts: &[Frame]) -> bool {
        let to = &mut self.transmit;
        if to.empty.available() < parts.len() {
            return false;
        }
        for part in parts {
            let Some(Entry { slot, .. }) = to.empty.take() else { return false };
            let at = u64::from(slot) * u64::from(to.slot_bytes);
            let bytes = part.len() as u32;
            // SAFETY: the receiver has handed the slot over, so no frame covers it.
            let mut copy = unsafe { Frame::new(&to.memory, at, bytes, to.slot_bytes, 0) };
            to.memory.bytes_mut(&mut copy).copy_from_slice(self.memory.bytes(part));
            to.filled.stage(Entry { slot, bytes, continues: part.continues() });
        }
        true
    }

    /// Puts a frame where it belongs: an own buffer, or a slot that goes back to the sender.
    fn put(&mut self, frame: Frame) {
        assert!(self.memory.owns(&frame), "a frame of another link");
        if self.buffers.owns(&frame) {
            return self.buffers.put(frame);
        }
        self.lent -= 1;
        let slot = (frame.at() / u64::from(self.receive.slot_bytes)) as u32;
        self.receive.empty.stage(Entry { slot, bytes: 0, continues: false });
    }

    /// How many parts the frame at the front of `frames` has; `None` if its end is missing.
    fn parts(frames: &[Frame]) -> Option<usize> {
        frames.iter().position(|frame| !frame.continues()).map(|last| last + 1)
    }

    /// Whether the link can carry a frame of so many bytes.
    fn fits(&self, parts: &[Frame]) -> bool {
        let bytes: usize = parts.iter().map(Frame::len).sum();
        let longest = self.info.mtu + crate::frame::ETHERNET_BYTES_MAX;
        (14..=longest).contains(&bytes)
            && parts.len() <= self.info.batch_max
            && parts.iter().all(|part| part.len() <= self.transmit.slot_bytes as usize)
    }
}

impl FrameLink for LoopLink {
    fn info(&self) -> &LinkInfo {
        &self.info
    }

    fn memory(&self) -> &Arc<FrameMemory> {
        &self.memory
    }

    fn steer(&mut self, _: &Steer) -> Result<(), LinkError> {
        // There is no kernel that the other frames could stay with.
        Ok(())
    }

    fn receive(&mut self, frames: &mut Vec<Frame>) -> io::Result<usize> {
        let checked = self.cable.check();
        if checked.is_ok() {
            let count = self.lend(frames);
            if count > 0 {
                return Ok(count);
            }
        }
        self.receive.bell.arm();
        checked?;
        let count = self.lend(frames);
        if count > 0 {
            self.receive.bell.news();
        }
        Ok(count)
    }

    fn give_back(&mut self, frames: &mut Vec<Frame>) {
        frames.drain(..).for_each(|frame| self.put(frame));
        self.receive.empty.publish();
    }

    fn reserve(&mut self, frames: &mut Vec<Frame>, count: usize) -> usize {
        self.buffers.reserve(frames, count)
    }

    fn transmit(&mut self, frames: &mut Vec<Frame>) -> io::Result<usize> {
        self.cable.check()?;
        let mut taken = 0;
        while taken < frames.len() && taken < self.info.batch_max {
            let whole = Self::parts(&frames[taken..]);
            let parts = &frames[taken..taken + whole.unwrap_or(frames.len() - taken)];
            let (count, bytes) =
                (parts.len(), parts.iter().map(|part| part.len() as u64).sum::<u64>());
            if whole.is_none() || !self.fits(parts) {
                self.counters.tx_invalid += 1;
            } else {
                let carried = self.carry(parts);
                if !carried && self.keep {
                    self.counters.tx_ring_full += 1;
                    break;
                }
                if !carried {
                    self.transmit.lost.fetch_add(1, Ordering::Relaxed);
                }
                self.counters.tx_frames += 1;
                self.counters.tx_bytes += bytes;
            }
            taken += count;
        }
        self.transmit.filled.publish();
        self.counters.syscalls += u64::from(self.transmit.bell.news());
        frames.drain(..taken).for_each(|frame| self.put(frame));
        self.receive.empty.publish();
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.cable.check()
    }

    fn poll_fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.receive.bell.poll_fd())
    }

    fn counters(&mut self) -> LinkCounters {
        let rx_ring_full = self.receive.lost.load(Ordering::Relaxed);
        LinkCounters { rx_ring_full, ..self.counters }
    }

    fn explain(&mut self) -> Option<String> {
        None
    }

    fn census(&self) -> Census {
        let pool = self.buffers.free();
        let lent = self.lent + self.buffers.count() - pool;
        Census { pool, receiving: self.receive.slots - self.lent, transmitting: 0, lent }
    }
}
