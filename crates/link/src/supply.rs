//! A frame link without a network: it receives frames from a [`FrameSupply`], and drops those that
//! it transmits.

use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

use rustix::mm::MapFlags;

use crate::LinkError;
use crate::buffers::Buffers;
use crate::frame::{
    Frame, FrameCounts, FrameLink, FrameMemory, FrameOptions, LinkCounters, LinkInfo, Steer,
};

/// The answer of a supply to a request for a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Supplied {
    /// A frame of this many bytes, written into the buffer.
    Frame(usize),
    /// A frame that cannot be received.
    Unfit,
    /// No frame now.
    Nothing,
}

/// A source of received frames.
pub(crate) trait FrameSupply: Send {
    /// Called once at the beginning of each [`FrameLink::receive`].
    ///
    /// # Errors
    /// The error for [`FrameLink::receive`] to report.
    fn look(&mut self) -> io::Result<()> {
        Ok(())
    }

    /// Writes the next frame at the beginning of `buffer`.
    ///
    /// # Errors
    /// The error for [`FrameLink::receive`] to report.
    fn next(&mut self, buffer: &mut [u8]) -> io::Result<Supplied>;
}

/// A frame link that receives from a supply.
pub(crate) struct SupplyLink<S> {
    info: LinkInfo,
    memory: Arc<FrameMemory>,
    supply: S,
    received: Buffers,
    buffers: Buffers,
    counters: LinkCounters,
    /// An error of the supply behind frames of the same poll; the next poll returns it.
    error: Option<io::Error>,
}

impl<S: FrameSupply> SupplyLink<S> {
    /// Creates a link. `info` has everything but the number of its frames.
    ///
    /// # Errors
    /// [`LinkError::Setup`] where there is no memory.
    pub fn new(mut info: LinkInfo, sizes: &FrameOptions, supply: S) -> Result<Self, LinkError> {
        let stride = info.part_bytes_max.next_multiple_of(64);
        let (receive, transmit) = (sizes.receive_frames.max(1), sizes.transmit_frames);
        let memory = FrameMemory::anonymous((receive + transmit) * stride, MapFlags::NORESERVE);
        let memory = memory.map_err(|source| LinkError::Setup { what: "frame memory", source })?;
        let memory = Arc::new(memory);
        info.receive_frames = receive;
        info.forwards = true;
        let first = (receive * stride) as u64;
        // SAFETY: these are two parts of the memory that do not overlap, and nothing else uses it.
        let (received, buffers) = unsafe {
            let buffers = |at, count| Buffers::new(Arc::clone(&memory), at, stride as u32, count);
            (buffers(0, receive), buffers(first, transmit))
        };
        let counters = LinkCounters::default();
        Ok(Self { info, memory, supply, received, buffers, counters, error: None })
    }

    fn put(&mut self, frame: Frame) {
        assert!(self.memory.owns(&frame), "a frame of another link");
        let owner = if self.buffers.owns(&frame) { &mut self.buffers } else { &mut self.received };
        owner.put(frame);
    }
}

impl<S: FrameSupply> FrameLink for SupplyLink<S> {
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
        if let Some(error) = self.error.take() {
            return Err(error);
        }
        self.supply.look()?;
        let before = frames.len();
        // Frames that do not fit count, too: a poll never waits, whatever the supply has.
        for _ in 0..self.info.batch_max {
            let Some(mut frame) = self.received.take() else { break };
            frame.set_len(self.info.part_bytes_max);
            let next = self.supply.next(self.memory.bytes_mut(&mut frame));
            if let Ok(Supplied::Frame(bytes)) = next {
                frame.set_len(bytes);
                self.counters.rx_frames += 1;
                self.counters.rx_bytes += bytes as u64;
                frames.push(frame);
                continue;
            }
            self.received.put(frame);
            match next {
                Ok(Supplied::Unfit) => self.counters.rx_dropped += 1,
                Ok(_) => break,
                Err(error) if frames.len() == before => return Err(error),
                Err(error) => {
                    self.error = Some(error);
                    break;
                }
            }
        }
        Ok(frames.len() - before)
    }

    fn give_back(&mut self, frames: &mut Vec<Frame>) {
        frames.drain(..).for_each(|frame| self.put(frame));
    }

    fn reserve(&mut self, frames: &mut Vec<Frame>, count: usize) -> usize {
        self.buffers.reserve(frames, count)
    }

    fn transmit(&mut self, frames: &mut Vec<Frame>) -> io::Result<usize> {
        let parts = frames.len();
        for frame in frames.drain(..) {
            self.counters.tx_frames += u64::from(!frame.continues());
            self.counters.tx_bytes += frame.len() as u64;
            self.put(frame);
        }
        Ok(parts)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn poll_fd(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    fn counters(&mut self) -> LinkCounters {
        self.counters
    }

    fn census(&self) -> FrameCounts {
        let (pool, receiving) = (self.buffers.free(), self.received.free());
        let lent = self.buffers.count() - pool + self.received.count() - receiving;
        FrameCounts { pool, receiving, transmitting: 0, lent }
    }
}
