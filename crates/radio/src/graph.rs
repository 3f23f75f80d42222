//! The chains of a device's graph: the blocks between each channel of a radio and its stream
//! endpoint.
//!
//! ```text
//! endpoint ─▶ DUC ─▶ Radio ─▶ DDC ─▶ endpoint
//! ```
//!
//! The walk is data in, data out; it performs no I/O.

use std::fmt;

use millstream_wire::regs::client_zero::{Edge, noc_id};

use crate::client_zero::{ClientZero, DeviceBlock};

/// The most blocks between a radio and its endpoint; connections may lead in a circle.
const BETWEEN_MAX: usize = 8;

/// The way of the samples through a chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum StreamDirection {
    /// From a radio's output to an endpoint.
    Rx,
    /// From an endpoint to a radio's input.
    Tx,
}

impl StreamDirection {
    /// Returns `rx` or `tx`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Rx => "rx",
            Self::Tx => "tx",
        }
    }

    /// Returns `receive` or `transmit`.
    pub fn verb(self) -> &'static str {
        match self {
            Self::Rx => "receive",
            Self::Tx => "transmit",
        }
    }

    /// Returns the kind of block that changes the rate in this direction.
    fn converter(self) -> u32 {
        match self {
            Self::Rx => noc_id::DDC,
            Self::Tx => noc_id::DUC,
        }
    }
}

/// A block, and the port by which a chain passes through it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockPort {
    /// The block.
    pub block: DeviceBlock,
    /// The number of its output and input.
    pub port: u8,
}

/// A channel of a radio, and its way to a stream endpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RadioChain {
    /// The way of the samples.
    pub direction: StreamDirection,
    /// The radio, and its output or input.
    pub radio: BlockPort,
    /// The blocks between the radio and the endpoint, from the radio on.
    pub between: Vec<BlockPort>,
    /// The instance of the endpoint, or the reason why no stream can use this channel.
    pub endpoint: Result<u16, Obstacle>,
}

/// Why a channel of a radio cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Obstacle {
    /// Nothing is connected there.
    Open {
        /// The block and its port, as text.
        at: String,
    },
    /// A block that may change the samples, and that this host cannot set.
    Foreign {
        /// The block's name.
        block: String,
    },
    /// A second block that changes the rate.
    SecondConverter {
        /// The block's name.
        block: String,
    },
    /// The way does not end, or only behind many blocks.
    TooLong,
}

impl fmt::Display for Obstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Open { at } => write!(f, "{at} is not connected"),
            Self::Foreign { block } => {
                write!(f, "{block} lies on its way, and this host cannot set it")
            }
            Self::SecondConverter { block } => {
                write!(f, "{block} is a second rate change on its way")
            }
            Self::TooLong => write!(f, "its way has more than {BETWEEN_MAX} blocks"),
        }
    }
}

impl RadioChain {
    /// Returns the block that changes the rate, if there is one.
    pub fn converter(&self) -> Option<BlockPort> {
        let kind = self.direction.converter();
        self.between.iter().copied().find(|place| place.block.noc_id == kind)
    }

    /// Returns the blocks that its samples pass, with the radio.
    pub fn blocks(&self) -> impl Iterator<Item = &DeviceBlock> {
        std::iter::once(&self.radio.block).chain(self.between.iter().map(|place| &place.block))
    }

    /// Describes the way, in the direction of the samples: `Radio#0:1 > DDC#0:1 > endpoint 1`.
    pub fn describe(&self, blocks: &ClientZero) -> String {
        let place =
            |place: &BlockPort| format!("{}:{}", blocks.name(place.block.index), place.port);
        let mut way = vec![place(&self.radio)];
        way.extend(self.between.iter().map(place));
        if let Ok(instance) = self.endpoint {
            way.push(blocks.name(instance + 1));
        }
        if self.direction == StreamDirection::Tx {
            way.reverse();
        }
        let way = way.join(" > ");
        match &self.endpoint {
            Ok(_) => way,
            Err(obstacle) => format!("{way}: unusable, because {obstacle}"),
        }
    }
}

impl ClientZero {
    /// Returns the chain of every output (or input) of every radio, usable or not. The usable ones
    /// are the channels of the device, in this order.
    pub fn chains(&self, direction: StreamDirection) -> Vec<RadioChain> {
        let radios = self.blocks.iter().filter(|block| block.noc_id == noc_id::RADIO);
        let ports = |radio: &DeviceBlock| match direction {
            StreamDirection::Rx => radio.info.outputs,
            StreamDirection::Tx => radio.info.inputs,
        };
        let places = radios
            .flat_map(|radio| (0..ports(radio)).map(|port| BlockPort { block: *radio, port }));
        places.map(|radio| self.chain(direction, radio)).collect()
    }

    fn chain(&self, direction: StreamDirection, radio: BlockPort) -> RadioChain {
        let mut chain = RadioChain { direction, radio, between: Vec::new(), endpoint: Ok(0) };
        chain.endpoint = self.follow(&mut chain);
        chain
    }

    /// Adds the blocks of a chain, and returns its endpoint.
    fn follow(&self, chain: &mut RadioChain) -> Result<u16, Obstacle> {
        let mut at = chain.radio;
        loop {
            let next = self.neighbour(chain.direction, at);
            let (index, port) = next.ok_or_else(|| {
                let (name, port) = (self.name(at.block.index), at.port);
                let end = if chain.direction == StreamDirection::Rx { "output" } else { "input" };
                Obstacle::Open { at: format!("{end} {port} of {name}") }
            })?;
            if (1..=self.endpoints).contains(&index) {
                return Ok(index - 1);
            }
            let name = || self.name(index);
            let block = *self.block(index).ok_or_else(|| Obstacle::Foreign { block: name() })?;
            at = BlockPort { block, port };
            if chain.between.len() == BETWEEN_MAX {
                return Err(Obstacle::TooLong);
            }
            // Its output and its input have the same number.
            let is_whole = port < block.info.inputs && port < block.info.outputs;
            let converts = block.noc_id == chain.direction.converter();
            if !is_whole || !(converts || block.noc_id == noc_id::DMA_FIFO) {
                return Err(Obstacle::Foreign { block: name() });
            }
            if converts && chain.converter().is_some() {
                return Err(Obstacle::SecondConverter { block: name() });
            }
            chain.between.push(at);
        }
    }

    /// Returns the index and port that a port of a block is connected to.
    pub(crate) fn neighbour(&self, direction: StreamDirection, at: BlockPort) -> Option<(u16, u8)> {
        let here = (at.block.index, at.port);
        let (src, dst) = (
            |edge: &Edge| (edge.src_index, edge.src_port),
            |edge: &Edge| (edge.dst_index, edge.dst_port),
        );
        match direction {
            StreamDirection::Rx => self.edges.iter().find(|edge| src(edge) == here).map(dst),
            StreamDirection::Tx => self.edges.iter().find(|edge| dst(edge) == here).map(src),
        }
    }
}

#[cfg(test)]
#[path = "graph_tests.rs"]
mod tests;
