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
use millstream_wire::regs::{null as null_regs, replay as replay_regs};
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
#[derive(Debug)]
pub(crate) enum StreamBlock {
    /// Registers without a memory behind them.
    DmaFifo,
    Replay(Box<Replay>),
    SigGen(Box<SigGen>),
    NullSrcSink(Box<NullSrcSink>),
}

/// Returns whether a register of the null source belongs to its finite mode, of UHD 4.10 and newer.
fn is_finite(address: u32) -> bool {
    (null_regs::PACKETS..null_regs::PACKETS + 8).contains(&address)
}

impl StreamBlock {
    /// Returns the block of a kind with this number of ports, in the state after power-on; `None`
    /// for blocks of the channels.
    pub fn new(kind: BlockKind, ports: usize, width: Width) -> Option<Self> {
        Some(match kind {
            BlockKind::Radio | BlockKind::Ddc | BlockKind::Duc => return None,
            BlockKind::DmaFifo => Self::DmaFifo,
            BlockKind::Replay => Self::Replay(Box::new(Replay::new(ports))),
            BlockKind::SigGen => Self::SigGen(Box::new(SigGen::new(ports))),
            BlockKind::NullSrcSink => Self::NullSrcSink(Box::new(NullSrcSink::new(width))),
        })
    }

    /// Restores the state after power-on; what a replay block has recorded remains.
    pub fn reset(&mut self) {
        match self {
            Self::DmaFifo => {}
            Self::Replay(block) => block.reset(),
            Self::SigGen(block) => block.reset(),
            Self::NullSrcSink(block) => block.reset(),
        }
    }

    /// Stops making packets, as a flush does.
    pub fn stop(&mut self) {
        match self {
            Self::DmaFifo => {}
            Self::Replay(block) => block.stop(),
            Self::SigGen(block) => block.stop(),
            Self::NullSrcSink(block) => block.stop(),
        }
    }

    /// Reads a register; those without content read as 0.
    pub fn read(&self, address: u32, generation: &Generation) -> u32 {
        match self {
            Self::NullSrcSink(_) if !generation.radio_map.has_features && is_finite(address) => 0,
            Self::Replay(_) if address == replay_regs::COMPAT => generation.replay_compat,
            Self::DmaFifo if address % DMA_FIFO_STRIDE == 0 => DMA_FIFO_INFO,
            Self::DmaFifo => 0,
            Self::Replay(block) => block.read(address),
            Self::SigGen(block) => block.read(address),
            Self::NullSrcSink(block) => block.read(address),
        }
    }

    /// Writes a register; those without a function take any value.
    pub fn write(&mut self, address: u32, value: u32) {
        match self {
            Self::DmaFifo => {}
            Self::Replay(block) => block.write(address, value),
            Self::SigGen(block) => block.write(address, value),
            Self::NullSrcSink(block) => block.write(address, value),
        }
    }

    /// Returns the packet at the head of output `port`.
    pub fn next_packet(&self, port: usize) -> Option<BlockPacket> {
        match self {
            Self::DmaFifo => None,
            Self::Replay(block) => block.next_packet(port),
            Self::SigGen(block) => block.next_packet(port),
            Self::NullSrcSink(block) => block.next_packet(port),
        }
    }

    /// Writes the bytes of that packet from byte `at` on; calls go through the packet in order.
    pub fn fill(&mut self, port: usize, at: usize, out: &mut [Sc16]) {
        match self {
            Self::DmaFifo => out.fill(Sc16::default()),
            Self::Replay(block) => block.fill(port, at, out),
            Self::SigGen(block) => block.fill(port, out),
            Self::NullSrcSink(block) => block.fill(port, at, out),
        }
    }

    /// Removes that packet, which was filled.
    pub fn sent(&mut self, port: usize) {
        match self {
            Self::DmaFifo | Self::SigGen(_) => {}
            Self::Replay(block) => block.sent(port),
            Self::NullSrcSink(block) => block.sent(port),
        }
    }

    /// Offers the rest of a packet to input `port`; returns the number of items taken. What is not
    /// taken waits in front of the block.
    pub fn take(&mut self, port: usize, items: &[Sc16]) -> usize {
        match self {
            // Nothing plays what it would store.
            Self::DmaFifo | Self::SigGen(_) => items.len(),
            Self::Replay(block) => block.take(port, items),
            Self::NullSrcSink(block) => block.take(port, items),
        }
    }
}
