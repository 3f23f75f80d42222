//! The channels of an open device: each radio channel with its endpoint and its rate change.

use std::num::NonZeroU32;

use millstream_wire::regs::dsp::Rate;

use crate::RadioError;
use crate::client_zero::{self, ClientZero, DeviceBlock};
use crate::control::Registers;
use crate::dsp_block::DspBlock;
use crate::graph::{BlockPort, RadioChain};
use crate::stream::StreamRate;
use crate::topology::{Endpoint, RadioTopology};

/// A usable chain: its radio channel `C`, and the settings of its rate change.
pub(super) struct ChannelChain<C> {
    pub channel: C,
    pub endpoint: Endpoint,
    pub dsp: ChainDsp,
}

/// The rate change of a chain.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct ChainDsp {
    /// `None` where the radio is wired to its endpoint.
    pub block: Option<DspBlock>,
    pub rate: Rate,
    /// The wanted shift of the spectrum.
    pub shift_hz: f64,
}

impl ChainDsp {
    /// Sets the factor that is nearest to `ratio`; without a block it stays 1.
    pub fn choose(&mut self, ratio: f64) {
        self.rate = self.block.map_or(Rate::ONE, |block| block.nearest(ratio));
    }

    /// Returns the rates of a stream, of a radio with this tick rate.
    pub fn stream_rate(&self, ticks_hz: f64) -> StreamRate {
        let ticks_per_sample = NonZeroU32::new(self.rate.factor()).unwrap_or(NonZeroU32::MIN);
        StreamRate { ticks_hz, ticks_per_sample }
    }

    /// Writes the settings into the block; returns the shift that was set.
    pub fn write(&self, control: &impl Registers, ticks_hz: f64) -> Result<f64, RadioError> {
        let Some(block) = self.block else { return Ok(0.0) };
        block.set_rate(control, self.rate)?;
        block.set_shift(control, self.shift_hz, ticks_hz)
    }
}

/// Flushes and resets the blocks of all chains, each once. Other blocks of the device stay as they
/// are.
pub(super) fn reset<'a>(
    control: &impl Registers,
    chains: impl Iterator<Item = &'a RadioChain>,
) -> Result<(), RadioError> {
    let mut blocks: Vec<&DeviceBlock> = chains.flat_map(RadioChain::blocks).collect();
    blocks.sort_by_key(|block| block.index);
    blocks.dedup_by_key(|block| block.index);
    blocks.into_iter().try_for_each(|block| client_zero::reset(control, block))
}

/// Opens the usable chains, in their order, which gives the channels their numbers.
pub(super) fn open_chains<C>(
    control: &impl Registers,
    topology: &RadioTopology,
    chains: &[RadioChain],
    open: impl Fn(BlockPort) -> Result<C, RadioError>,
) -> Result<Vec<ChannelChain<C>>, RadioError> {
    let mut found = Vec::new();
    for chain in chains {
        let instance = chain.endpoint.as_ref().ok();
        let Some(endpoint) = instance.and_then(|instance| topology.instance(*instance)) else {
            continue;
        };
        let block = chain.converter().map(|place| DspBlock::open(control, chain.direction, place));
        found.push(ChannelChain {
            channel: open(chain.radio)?,
            endpoint: *endpoint,
            dsp: ChainDsp { block: block.transpose()?, rate: Rate::ONE, shift_hz: 0.0 },
        });
    }
    Ok(found)
}

/// Says why a device has no receive channel.
pub(super) fn no_channel(blocks: &ClientZero, chains: &[RadioChain]) -> String {
    let ways: Vec<_> = chains
        .iter()
        .filter(|chain| chain.endpoint.is_err())
        .map(|chain| chain.describe(blocks))
        .collect();
    let reasons = if ways.is_empty() { String::new() } else { format!(": {}", ways.join("; ")) };
    format!("it has no receive channel wired to a stream endpoint{reasons}")
}
