//! The FPGA image of a device: its blocks, endpoints and connections.

use super::{FrontEndKind, MemoryBlock, Personality};
use crate::UhdGeneration;
use crate::generation::Generation;
use millstream_wire::chdr::Width;
use millstream_wire::regs::client_zero::{Edge, noc_id};
use millstream_wire::regs::dsp::DspMap;

/// An image.
#[derive(Debug, Clone)]
pub(crate) struct Image {
    /// Value of [`millstream_wire::regs::client_zero::device_type`].
    pub device_type: u16,
    /// What it speaks.
    pub generation: &'static Generation,
    /// Blocks name their clocks by numbers.
    pub numbers_clocks: bool,
    /// The CHDR width.
    pub width: Width,
    /// The transport adapters, one for each link.
    pub links: u16,
    /// Endpoint i serves channel i.
    pub channels: usize,
    /// Samples that a radio processes in one cycle.
    pub samples_per_cycle: u32,
    /// Cycles of a radio for each sample, where it does not process one or more in each cycle.
    pub cycles_per_sample: u32,
    /// The stream endpoints: those of the channels, then those of other blocks.
    pub endpoints: u16,
    /// The blocks, in the order of their indices.
    pub blocks: Vec<Block>,
    /// The static connections, in order.
    pub edges: Vec<Edge>,
}

/// What of an image is chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ImageOptions {
    pub width: Width,
    pub links: u16,
    /// Further blocks: for recording and playing, generating, and taking everything.
    pub extra_blocks: bool,
    pub generation: &'static Generation,
}

impl Default for ImageOptions {
    /// As in the stock images, with one link.
    fn default() -> Self {
        let generation = UhdGeneration::Auto.row();
        Self { width: Width::W64, links: 1, extra_blocks: false, generation }
    }
}

/// A block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Block {
    pub kind: BlockKind,
    /// The channel, or the endpoint of a block without channels, of its port 0; the others follow.
    pub first: usize,
    pub inputs: u8,
    pub outputs: u8,
    /// Log2 of the 32-bit words of its command FIFO.
    pub fifo_log2: u8,
}

/// The function of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BlockKind {
    Radio,
    Ddc,
    Duc,
    /// Registers without a memory behind them.
    DmaFifo,
    Replay,
    SigGen,
    NullSrcSink,
}

impl BlockKind {
    /// Returns whether its ports are channels.
    pub const fn has_channels(self) -> bool {
        matches!(self, Self::Radio | Self::Ddc | Self::Duc)
    }

    /// Returns the inputs that a block of this kind has at least; one without a connection among
    /// them takes nothing.
    pub const fn least_inputs(self) -> u8 {
        matches!(self, Self::SigGen) as u8
    }

    /// Returns the number by which hosts know the block.
    pub const fn noc_id(self) -> u32 {
        match self {
            BlockKind::Radio => noc_id::RADIO,
            BlockKind::Ddc => noc_id::DDC,
            BlockKind::Duc => noc_id::DUC,
            BlockKind::DmaFifo => noc_id::DMA_FIFO,
            BlockKind::Replay => noc_id::REPLAY,
            BlockKind::SigGen => noc_id::SIG_GEN,
            BlockKind::NullSrcSink => noc_id::NULL_SRC_SINK,
        }
    }
}

/// A port of an endpoint or of the block with a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Endpoint(usize),
    Block(usize, u8),
}

/// The parts so far of an image that is being put together.
#[derive(Debug, Default)]
struct Parts {
    blocks: Vec<Block>,
    /// Each goes from an endpoint through blocks to an endpoint.
    chains: Vec<Vec<Place>>,
    endpoints: usize,
}

impl Parts {
    /// Adds a block; returns its number.
    fn add(&mut self, kind: BlockKind, first: usize, [inputs, outputs]: [u8; 2]) -> usize {
        let fifo_log2 = match kind {
            BlockKind::Radio => 9,
            BlockKind::Replay | BlockKind::NullSrcSink | BlockKind::SigGen => 5,
            _ => 6,
        };
        self.blocks.push(Block { kind, first, inputs, outputs, fifo_log2 });
        self.blocks.len() - 1
    }

    /// Adds radio `number` of a device and the blocks around it.
    fn add_radio(&mut self, device: &Personality, number: usize) {
        let (first, ports) = (number * device.radio_channels, device.radio_channels as u8);
        let both = [ports; 2];
        let dsp = device.has_dsp.then(|| {
            (self.add(BlockKind::Duc, first, both), self.add(BlockKind::Ddc, first, both))
        });
        let radio = self.add(BlockKind::Radio, first, both);
        for port in 0..ports {
            let end = Place::Endpoint(first + usize::from(port));
            let way = match dsp {
                Some((duc, ddc)) => vec![duc, radio, ddc],
                None => vec![radio],
            };
            let way = way.into_iter().map(|block| Place::Block(block, port));
            self.chains.push([end].into_iter().chain(way).chain([end]).collect());
        }
        self.endpoints += device.radio_channels;
    }

    /// Adds a block with an endpoint at each port.
    fn add_alone(&mut self, kind: BlockKind, inputs: u8, outputs: u8) {
        let block = self.add(kind, self.endpoints, [inputs, outputs]);
        for port in 0..inputs.max(outputs) {
            let (end, place) = (Place::Endpoint(self.endpoints), Place::Block(block, port));
            if port < inputs {
                self.chains.push(vec![end, place]);
            }
            if port < outputs {
                self.chains.push(vec![place, end]);
            }
            self.endpoints += 1;
        }
    }
}

impl Image {
    /// Returns the image of a device.
    pub fn new(device: &Personality, options: ImageOptions) -> Self {
        let mut parts = Parts::default();
        (0..device.radios).for_each(|number| parts.add_radio(device, number));
        match device.memory {
            MemoryBlock::DmaFifo(ports) => parts.add_alone(BlockKind::DmaFifo, ports, ports),
            MemoryBlock::Replay(ports) => parts.add_alone(BlockKind::Replay, ports, ports),
            MemoryBlock::None => {}
        }
        if options.extra_blocks {
            if !matches!(device.memory, MemoryBlock::Replay(_)) {
                parts.add_alone(BlockKind::Replay, 2, 2);
            }
            parts.add_alone(BlockKind::SigGen, 0, 2);
            parts.add_alone(BlockKind::NullSrcSink, 2, 2);
        }
        Self::of(parts, device, options)
    }

    /// Returns the image of these parts.
    fn of(parts: Parts, device: &Personality, options: ImageOptions) -> Self {
        let Parts { blocks, chains, endpoints } = parts;
        let mut image = Self {
            device_type: device.device_type,
            generation: options.generation,
            numbers_clocks: device.front_end == FrontEndKind::Zbx,
            width: options.width,
            links: options.links,
            channels: device.channels(),
            samples_per_cycle: device.samples_per_cycle,
            cycles_per_sample: 1,
            endpoints: endpoints as u16,
            blocks,
            edges: Vec::new(),
        };
        let pairs = chains.iter().flat_map(|chain| chain.windows(2));
        image.edges = pairs.map(|pair| image.edge(pair[0], pair[1])).collect();
        image
    }

    /// Returns the image of the recorded exchanges (`tests/exchanges/README.md`), with radios that
    /// have a sample in so many cycles.
    #[cfg(test)]
    pub fn recorded(cycles_per_sample: u32) -> Self {
        let mut parts = Parts::default();
        parts.add_radio(crate::DeviceKind::E320.personality(), 0);
        parts.add_alone(BlockKind::NullSrcSink, 2, 2);
        parts.add_alone(BlockKind::SigGen, 0, 1);
        let device = crate::DeviceKind::E320.personality();
        let options = ImageOptions { links: 2, ..ImageOptions::default() };
        Self { cycles_per_sample, ..Self::of(parts, device, options) }
    }

    fn edge(&self, from: Place, to: Place) -> Edge {
        let place = |place: Place| match place {
            Place::Endpoint(number) => (1 + number as u16, 0),
            Place::Block(number, port) => (self.index_of(number as u16), port),
        };
        let ((src_index, src_port), (dst_index, dst_port)) = (place(from), place(to));
        Edge { src_index, src_port, dst_index, dst_port }
    }

    /// Returns the index of block `number`, behind client zero and the endpoints.
    pub const fn index_of(&self, number: u16) -> u16 {
        1 + self.endpoints + number
    }

    /// Returns the number of the block with this index.
    pub fn number_of(&self, index: u32) -> Option<usize> {
        let number = index.checked_sub(self.index_of(0).into())? as usize;
        (number < self.blocks.len()).then_some(number)
    }

    /// Returns the number of the block without channels that has this endpoint, and its port there.
    pub fn block_behind(&self, endpoint: usize) -> Option<(usize, usize)> {
        if endpoint < self.channels {
            return None;
        }
        let number = self
            .blocks
            .iter()
            .rposition(|block| !block.kind.has_channels() && block.first <= endpoint)?;
        Some((number, endpoint - self.blocks[number].first))
    }

    /// Returns the number of endpoints to which hosts may send data.
    pub fn receivers(&self) -> usize {
        (0..self.endpoints.into()).filter(|endpoint| self.takes_data(*endpoint)).count()
    }

    /// Returns whether hosts may send data to this endpoint.
    pub fn takes_data(&self, endpoint: usize) -> bool {
        endpoint < self.channels
            || self.block_behind(endpoint).is_some_and(|(number, port)| {
                let block = &self.blocks[number];
                block.kind != BlockKind::DmaFifo && port < block.inputs.into()
            })
    }

    /// Returns whether there is a block of this kind.
    pub fn has(&self, kind: BlockKind) -> bool {
        self.blocks.iter().any(|block| block.kind == kind)
    }

    /// Returns the registers of DDC or DUC, if there is one: those for several samples in a cycle
    /// have a map of their own.
    pub fn dsp_map(&self, kind: BlockKind) -> Option<DspMap> {
        let compat = u32::from(self.samples_per_cycle > 1) << 16;
        DspMap::of_compat(compat, kind == BlockKind::Ddc).filter(|_| self.has(kind))
    }

    /// Returns the radio blocks with their numbers, in order.
    pub fn radios(&self) -> impl Iterator<Item = (u16, &Block)> {
        (0..).zip(&self.blocks).filter(|(_, block)| block.kind == BlockKind::Radio)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DeviceKind;

    #[test]
    fn every_port_of_every_block_is_connected_once_on_either_side() {
        for device in DeviceKind::ALL {
            let options = ImageOptions { extra_blocks: true, ..ImageOptions::default() };
            let it = Image::new(device.personality(), options);
            let mut ends: Vec<_> = it
                .edges
                .iter()
                .flat_map(|e| [(true, e.src_index, e.src_port), (false, e.dst_index, e.dst_port)])
                .collect();
            ends.sort_unstable();
            let mut want = Vec::new();
            for (number, block) in (0..).zip(&it.blocks) {
                let index = it.index_of(number);
                want.extend((0..block.outputs).map(|port| (true, index, port)));
                want.extend((0..block.inputs).map(|port| (false, index, port)));
            }
            for endpoint in 0..it.endpoints {
                want.push((false, 1 + endpoint, 0));
                // A generator takes nothing.
                let (block, _) = it.block_behind(endpoint.into()).unzip();
                if block.is_none_or(|number| it.blocks[number].kind != BlockKind::SigGen) {
                    want.push((true, 1 + endpoint, 0));
                }
            }
            want.sort_unstable();
            assert_eq!(ends, want, "{device:?}");
        }
    }

    #[test]
    fn the_blocks_of_an_n310_serve_the_channels_in_order() {
        let it = Image::new(DeviceKind::N310.personality(), ImageOptions::default());
        let firsts: Vec<_> = it.blocks.iter().map(|block| (block.kind, block.first)).collect();
        let of_radio =
            |first| [BlockKind::Duc, BlockKind::Ddc, BlockKind::Radio].map(|k| (k, first));
        assert_eq!(firsts[..6], [of_radio(0), of_radio(2)].concat());
        let chain: Vec<_> = it.edges[12..16].iter().map(|e| (e.src_index, e.dst_index)).collect();
        let index = |number| it.index_of(number);
        assert_eq!(
            chain,
            [(4, index(3)), (index(3), index(5)), (index(5), index(4)), (index(4), 4)]
        );
    }
}
