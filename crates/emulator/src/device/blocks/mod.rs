//! Blocks beside the radio whose ports have endpoints of their own.
//!
//! An output has at most one packet at its head: [`StreamBlock::next_packet`] describes it,
//! [`StreamBlock::fill`] writes its bytes, [`StreamBlock::sent`] removes it. They know no time and
//! make packets as fast as those are taken.

mod null;
mod replay;
mod sig_gen;

use crate::antenna::Sc16;
use crate::generation::Generation;
use crate::personality::BlockKind;
use millstream_wire::chdr::Width;
use null::NullSrcSink;
use replay::Replay;
use sig_gen::SigGen;

/// The description of the DMA FIFO block: its number, and no self-test.
const DMA_FIFO_INFO: u32 = 0xF1F0_0000;
/// Distance of the registers of two of its ports.
const DMA_FIFO_STRIDE: u32 = 0x80;

/// The packet at the head of an output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BlockPacket {
    /// Bytes of its payload, a multiple of 4.
    pub bytes: usize,
    /// The bytes of a payload that its header announces, if they are others.
    pub announced: Option<usize>,
    pub timestamp: Option<u64>,
    pub eob: bool,
}

/// A block with endpoints of its own.
pub(crate) trait StreamBlock: Send {
    /// Restores the state after power-on; what a replay block has recorded remains.
    fn reset(&mut self) {}

    /// Stops making packets, as a flush does.
    fn stop(&mut self) {}

    /// Reads a register; those without content read as 0.
    fn read(&self, address: u32, generation: &Generation) -> u32;

    /// Writes a register; those without a function take any value.
    fn write(&mut self, _address: u32, _value: u32) {}

    /// Returns the packet at the head of output `port`.
    fn next_packet(&self, _port: usize) -> Option<BlockPacket> {
        None
    }

    /// Writes the bytes of that packet from byte `at` on; calls go through the packet in order.
    fn fill(&mut self, _port: usize, _at: usize, out: &mut [Sc16]) {
        out.fill(Sc16::default());
    }

    /// Removes that packet, which was filled.
    fn sent(&mut self, _port: usize) {}

    /// Offers the rest of a packet to input `port`; returns the number of items taken. What is not
    /// taken waits in front of the block.
    fn take(&mut self, _port: usize, items: &[Sc16]) -> usize {
        items.len()
    }
}

/// Returns the block of a kind with this number of ports, in the state after power-on; `None` for
/// blocks of the channels.
pub(super) fn new(kind: BlockKind, ports: usize, width: Width) -> Option<Box<dyn StreamBlock>> {
    Some(match kind {
        BlockKind::Radio | BlockKind::Ddc | BlockKind::Duc => return None,
        BlockKind::DmaFifo => Box::new(DmaFifo),
        BlockKind::Replay => Box::new(Replay::new(ports)),
        BlockKind::SigGen => Box::new(SigGen::new(ports)),
        BlockKind::NullSrcSink => Box::new(NullSrcSink::new(width)),
    })
}

/// Registers without a memory behind them: nothing plays what it would store.
struct DmaFifo;

impl StreamBlock for DmaFifo {
    fn read(&self, address: u32, _: &Generation) -> u32 {
        if address % DMA_FIFO_STRIDE == 0 { DMA_FIFO_INFO } else { 0 }
    }
}
