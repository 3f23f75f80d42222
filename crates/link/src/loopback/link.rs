//! One end: a frame link whose device is the other end's memory.

use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use millstream_ring::{Beacon, spsc};

use super::cable::Cable;
use crate::LinkError;
use crate::buffers::Buffers;
use crate::frame::{Frame, FrameCounts, FrameLink, FrameMemory, LinkCounters, LinkInfo, Steer};

/// A slot of the receiver's memory that the sender has filled, and the size of its content.
#[derive(Debug, Clone, Copy)]
pub(super) struct Filled {
    pub slot: u32,
    pub bytes: u32,
    pub continues: bool,
}

/// The receiving half of an end: its slots come filled and go back empty.
pub(super) struct Receive {
    pub filled: spsc::Receiver<Filled>,
    /// Filled slots for which the last batch had no room.
    pub arrived: Vec<Filled>,
    pub empty: spsc::Sender<u32>,
    /// Empty slots that the sender does not see yet.
    pub emptied: Vec<u32>,
    pub slots: usize,
    pub slot_bytes: u32,
    /// Frames for which there was no empty slot, counted by the sender.
    pub lost: Arc<AtomicU64>,
    pub bell: Arc<Beacon>,
}

/// The sending half of an end: the receiver's empty slots, and the memory they lie in.
pub(super) struct TransmitSlots {
    pub filled: spsc::Sender<Filled>,
    /// Filled slots that the receiver does not see yet: whole frames.
    pub carried: Vec<Filled>,
    pub empty: spsc::Receiver<u32>,
    /// Empty slots that were taken out of the channel.
    pub spare: Vec<u32>,
    pub slot_bytes: u32,
    pub memory: Arc<FrameMemory>,
    pub lost: Arc<AtomicU64>,
    pub bell: Arc<Beacon>,
}

/// One end of a loop or a pair.
pub struct LoopLink {
    pub(super) info: LinkInfo,
    pub(super) memory: Arc<FrameMemory>,
    pub(super) receive: Receive,
    pub(super) transmit: TransmitSlots,
    pub(super) buffers: Buffers,
    pub(super) cable: Cable,
    /// A frame without a free slot waits instead of being lost.
    pub(super) keep: bool,
    pub(super) counters: LinkCounters,
    /// Slots lent to the user.
    pub(super) lent: usize,
}

impl LoopLink {
    /// Lends the arrived frames, whole frames as far as a batch has room.
    fn lend(&mut self, frames: &mut Vec<Frame>) -> usize {
        let Receive { filled, arrived, .. } = &mut self.receive;
        filled.pop_batch(arrived, self.info.batch_max - arrived.len());
        if arrived.is_empty() {
            return 0;
        }
        let whole = arrived.iter().rposition(|part| !part.continues).map_or(0, |last| last + 1);
        for index in 0..whole {
            let entry = self.receive.arrived[index];
            frames.push(self.frame(entry));
            self.counters.rx_bytes += u64::from(entry.bytes);
            self.counters.rx_frames += u64::from(!entry.continues);
        }
        self.receive.arrived.drain(..whole);
        self.lent += whole;
        whole
    }

    fn frame(&self, entry: Filled) -> Frame {
        let Receive { slot_bytes, .. } = self.receive;
        let at = u64::from(entry.slot) * u64::from(slot_bytes);
        // SAFETY: the sender has handed the slot over, and does not use it any more.
        let mut frame = unsafe { Frame::new(&self.memory, at, entry.bytes, slot_bytes, 0) };
        frame.set_continues(entry.continues);
        frame
    }

    /// Copies one frame into empty slots of the other end; returns false if there were too few.
    fn carry(&mut self, parts: &[Frame]) -> bool {
        let to = &mut self.transmit;
        if to.spare.len() < parts.len() {
            to.empty.pop_batch(&mut to.spare, usize::MAX);
        }
        if to.spare.len() < parts.len() {
            return false;
        }
        for part in parts {
            let Some(slot) = to.spare.pop() else { return false };
            let at = u64::from(slot) * u64::from(to.slot_bytes);
            let bytes = part.len() as u32;
            // SAFETY: the receiver has handed the slot over, so no frame covers it.
            let mut copy = unsafe { Frame::new(&to.memory, at, bytes, to.slot_bytes, 0) };
            to.memory.bytes_mut(&mut copy).copy_from_slice(self.memory.bytes(part));
            to.carried.push(Filled { slot, bytes, continues: part.continues() });
        }
        true
    }

    /// Returns a frame to its owner: an own buffer is freed, a slot goes back to the sender.
    fn put(&mut self, frame: Frame) {
        assert!(self.memory.owns(&frame), "a frame of another link");
        if self.buffers.owns(&frame) {
            return self.buffers.put(frame);
        }
        self.lent -= 1;
        let slot = (frame.at() / u64::from(self.receive.slot_bytes)) as u32;
        self.receive.emptied.push(slot);
    }

    /// Publishes the returned slots to the sender.
    fn publish_empty(&mut self) {
        if !self.receive.emptied.is_empty() {
            self.receive.empty.push_batch(&mut self.receive.emptied);
        }
    }

    /// Returns the number of parts of the frame at the front of `frames`; `None` if its end is
    /// missing.
    fn parts(frames: &[Frame]) -> Option<usize> {
        frames.iter().position(|frame| !frame.continues()).map(|last| last + 1)
    }

    /// Whether the link can carry a frame of this size.
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
        // There is no kernel with which the other frames could stay.
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
        self.publish_empty();
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
        self.transmit.filled.push_batch(&mut self.transmit.carried);
        self.counters.syscalls += u64::from(self.transmit.bell.news());
        frames.drain(..taken).for_each(|frame| self.put(frame));
        self.publish_empty();
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

    fn census(&self) -> FrameCounts {
        let pool = self.buffers.free();
        let lent = self.lent + self.buffers.count() - pool;
        FrameCounts { pool, receiving: self.receive.slots - self.lent, transmitting: 0, lent }
    }
}
