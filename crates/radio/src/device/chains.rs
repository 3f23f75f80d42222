//! The channels of an open device: each radio channel with its endpoint and its rate change.

use std::num::NonZeroU32;

use millstream_wire::regs::dsp::{Rate, phase_increment, shift_hz};

use super::link::LinkNumber;
use super::tuning::FrontState;
use crate::RadioError;
use crate::client_zero::{self, ClientZero, DeviceBlock};
use crate::control::Registers;
use crate::dsp_block::DspBlock;
use crate::graph::{BlockPort, RadioChain};
use crate::stream::StreamRate;
use crate::topology::{Endpoint, RadioTopology};

/// A usable chain: its radio channel `C`, its endpoint, and its settings.
pub(super) struct ChannelChain<C> {
    pub channel: C,
    pub endpoint: Endpoint,
    pub link: LinkNumber,
    pub set: ChainSettings,
}

/// The settings of a chain.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct ChainSettings {
    /// The radio's channel.
    pub radio: BlockPort,
    /// The number of the radio among those of the device.
    pub radio_number: usize,
    pub dsp: ChainDsp,
    pub front: FrontState,
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

    /// Writes the settings into the block.
    pub fn write(&self, control: &impl Registers, ticks_hz: f64) -> Result<(), RadioError> {
        let Some(block) = self.block else { return Ok(()) };
        block.set_rate(control, self.rate)?;
        block.set_shift(control, self.shift_hz, ticks_hz)
    }

    /// Writes the shift into the block.
    pub fn write_shift(&self, control: &impl Registers, ticks_hz: f64) -> Result<(), RadioError> {
        self.block.map_or(Ok(()), |block| block.set_shift(control, self.shift_hz, ticks_hz))
    }

    /// Returns the shift that a radio of this tick rate gets: the nearest that the block can make.
    pub fn shift_set(&self, ticks_hz: f64) -> f64 {
        let increment = phase_increment(self.shift_hz, ticks_hz);
        self.block.map_or(0.0, |_| shift_hz(increment, ticks_hz))
    }
}

/// Flushes and resets the blocks of all chains, each once, in the order of the samples: up to the
/// radios, the radios, and from them on. Other blocks of the device stay as they are.
pub(super) fn reset(
    control: &impl Registers,
    rx: &[RadioChain],
    tx: &[RadioChain],
) -> Result<(), RadioError> {
    let to_radios = tx.iter().flat_map(|chain| chain.between.iter().rev());
    let radios = tx.iter().chain(rx).map(|chain| &chain.radio);
    let from_radios = rx.iter().flat_map(|chain| &chain.between);
    let mut blocks: Vec<DeviceBlock> = Vec::new();
    for place in to_radios.chain(radios).chain(from_radios) {
        if !blocks.contains(&place.block) {
            blocks.push(place.block);
        }
    }
    client_zero::reset(control, &blocks)
}

/// Opens the usable chains, in their order, which gives the channels their numbers.
pub(super) fn open_chains<C>(
    control: &impl Registers,
    topology: &RadioTopology,
    chains: &[RadioChain],
    open: impl Fn(BlockPort) -> Result<C, RadioError>,
) -> Result<Vec<ChannelChain<C>>, RadioError> {
    let mut found = Vec::new();
    let mut radios: Vec<_> = chains.iter().map(|chain| chain.radio.block.index).collect();
    radios.dedup();
    for chain in chains {
        let radio = chain.radio.block.index;
        let instance = chain.endpoint.as_ref().ok();
        let Some(endpoint) = instance.and_then(|instance| topology.instance(*instance)) else {
            continue;
        };
        let block = chain.converter().map(|place| DspBlock::open(control, chain.direction, place));
        found.push(ChannelChain {
            channel: open(chain.radio)?,
            endpoint: *endpoint,
            link: LinkNumber::default(),
            set: ChainSettings {
                radio: chain.radio,
                radio_number: radios.iter().position(|index| *index == radio).unwrap_or(0),
                dsp: ChainDsp { block: block.transpose()?, rate: Rate::ONE, shift_hz: 0.0 },
                front: FrontState::default(),
            },
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

#[cfg(test)]
mod tests {
    use millstream_wire::Epid;
    use millstream_wire::regs::client_zero::{BLOCK_INFO, BLOCK_NOC_ID};

    use super::*;
    use crate::graph::StreamDirection;
    use crate::testing::FakeE320;

    #[test]
    fn the_blocks_of_a_real_image_are_reset_and_set_before_a_stream() {
        let device = FakeE320::default();
        let blocks = ClientZero::read(&device).unwrap();
        let rx = blocks.chains(StreamDirection::Rx);
        let tx = blocks.chains(StreamDirection::Tx);
        reset(&device, &rx, &tx).unwrap();
        let reset: Vec<_> = device.take_writes();
        // DUC, Radio, DDC; each once, and not the DmaFIFO.
        let order = [3u32, 5, 4];
        let at = |index, offset| 0x40 * index + offset;
        let flush = order.map(|index| {
            [(BLOCK_INFO, 100), (BLOCK_NOC_ID, 0), (BLOCK_NOC_ID, 1)]
                .map(|(offset, value)| (0, at(index, offset), value))
        });
        let resets = order.map(|index| [0, 6, 0].map(|value| (0, at(index, BLOCK_NOC_ID), value)));
        assert_eq!(reset, [flush.concat(), resets.concat()].concat());

        let endpoint = |instance| Endpoint {
            port: 1 + instance,
            instance,
            epid: Epid(2 + instance),
            control: instance == 0,
            data: true,
        };
        let endpoints = vec![endpoint(0), endpoint(1)];
        let topology = RadioTopology { entry_port: 0, transport: 0, endpoints };
        let mut all = open_chains(&device, &topology, &rx, Ok).unwrap();
        let ChannelChain { channel, endpoint, set, .. } = &mut all[1];
        assert_eq!((channel.block.port, channel.port), (FakeE320::RADIO, 1));
        assert_eq!((endpoint.instance, set.radio_number), (1, 0));

        set.dsp.choose(16e6 / 640e3);
        set.dsp.shift_hz = 3e6;
        assert_eq!(set.dsp.stream_rate(16e6).samples_hz(), 640e3);
        set.dsp.write(&device, 16e6).unwrap();
        let ddc = [
            (0xC30, 0x019),
            (0xC00, 25),
            (0xC08, 1),
            (0xC48, 25),
            (0xC28, 0x55E6),
            (0xC20, 0x3000_0000),
        ];
        assert_eq!(device.take_writes(), ddc.map(|(at, value)| (FakeE320::DDC, at, value)));

        let mut all = open_chains(&device, &topology, &tx, Ok).unwrap();
        let dsp = &mut all[0].set.dsp;
        dsp.choose(16.0);
        dsp.write(&device, 16e6).unwrap();
        let duc =
            [(0x418, 0x302), (0x408, 16), (0x400, 1), (0x448, 1), (0x428, 0x8000), (0x420, 0)];
        assert_eq!(device.take_writes(), duc.map(|(at, value)| (FakeE320::DUC, at, value)));
    }

    #[test]
    fn a_device_without_a_usable_channel_says_why() {
        let mut blocks = ClientZero::read(&FakeE320::default()).unwrap();
        blocks.edges.clear();
        let text = no_channel(&blocks, &blocks.chains(StreamDirection::Rx));
        assert!(text.contains("because output 0 of Radio#0 is not connected"), "{text}");
    }
}
