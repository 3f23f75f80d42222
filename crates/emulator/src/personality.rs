//! The kinds of device that this radio can be, as data: their blocks, endpoints and connections.

use crate::config::CHANNELS;
use millstream_wire::regs::client_zero::{Edge, device_type, noc_id};

/// A device that the radio can be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DeviceKind {
    /// An E320 with an image that has the radio block alone: samples of the host go to the
    /// converters as they are, and tuning has no effect.
    #[default]
    E320Radio,
    /// An E320 with its stock image: DUC, radio and DDC.
    E320,
}

impl DeviceKind {
    /// All devices.
    pub const ALL: [DeviceKind; 2] = [DeviceKind::E320Radio, DeviceKind::E320];

    /// Returns its name on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            DeviceKind::E320Radio => "e320-radio",
            DeviceKind::E320 => "e320",
        }
    }

    /// Returns the description of the device.
    pub(crate) const fn personality(self) -> &'static Personality {
        match self {
            DeviceKind::E320Radio => &E320_RADIO,
            DeviceKind::E320 => &E320,
        }
    }
}

/// The description of a device.
#[derive(Debug)]
pub(crate) struct Personality {
    /// Value of [`device_type`].
    pub device_type: u16,
    /// Type and product that MPM shows.
    pub mpm_type: &'static str,
    pub product: &'static str,
    /// Bits of a CHDR word.
    pub chdr_width: u16,
    /// The stream endpoints; endpoint i serves channel i, the others no channel.
    pub endpoints: u16,
    /// The blocks, in the order of their indices.
    pub blocks: &'static [Block],
    /// The static connections, as chains of places.
    pub chains: &'static [&'static [Place]],
}

/// A block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Block {
    pub kind: BlockKind,
    /// Inputs, and as many outputs.
    pub ports: u8,
    /// Log2 of the 32-bit words of its command FIFO.
    pub fifo_log2: u8,
    /// The asynchronous messages that it may send before the host has acknowledged one.
    pub async_messages: u8,
}

/// The function of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BlockKind {
    Radio,
    Ddc,
    Duc,
    /// Registers without a memory behind them.
    DmaFifo,
}

/// A port of an endpoint or of the block with a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    Endpoint(u16),
    Block(u16, u8),
}

impl BlockKind {
    /// Returns the number by which hosts know the block.
    pub const fn noc_id(self) -> u32 {
        match self {
            BlockKind::Radio => noc_id::RADIO,
            BlockKind::Ddc => noc_id::DDC,
            BlockKind::Duc => noc_id::DUC,
            BlockKind::DmaFifo => 0xF1F0_0000,
        }
    }
}

impl Personality {
    /// Returns the index of block `number`, behind client zero and the endpoints.
    pub const fn index_of(&self, number: u16) -> u16 {
        1 + self.endpoints + number
    }

    /// Returns the block with this index.
    pub fn block_at(&self, index: u32) -> Option<&'static Block> {
        let first = u32::from(self.index_of(0));
        self.blocks.get(index.checked_sub(first)? as usize)
    }

    /// Returns whether there is a block of this kind.
    pub fn has(&self, kind: BlockKind) -> bool {
        self.blocks.iter().any(|block| block.kind == kind)
    }

    /// Returns the static connections, in order.
    pub fn edges(&self) -> impl Iterator<Item = Edge> {
        let place = |place: Place| match place {
            Place::Endpoint(number) => (1 + number, 0),
            Place::Block(number, port) => (self.index_of(number), port),
        };
        let pairs = self.chains.iter().flat_map(|chain| chain.windows(2));
        pairs.map(move |pair| {
            let ((src_index, src_port), (dst_index, dst_port)) = (place(pair[0]), place(pair[1]));
            Edge { src_index, src_port, dst_index, dst_port }
        })
    }
}

const RADIO: Block =
    Block { kind: BlockKind::Radio, ports: CHANNELS as u8, fifo_log2: 9, async_messages: 4 };

/// A block whose commands never wait.
const fn plain(kind: BlockKind) -> Block {
    Block { kind, ports: CHANNELS as u8, fifo_log2: 6, async_messages: 0 }
}

use Place::{Block as B, Endpoint as E};

static E320_RADIO: Personality = Personality {
    device_type: device_type::E320,
    mpm_type: "e3xx",
    product: "e320",
    chdr_width: 64,
    endpoints: 2,
    blocks: &[RADIO],
    chains: &[&[E(0), B(0, 0), E(0)], &[E(1), B(0, 1), E(1)]],
};

static E320: Personality = Personality {
    endpoints: 4,
    blocks: &[plain(BlockKind::Duc), plain(BlockKind::Ddc), RADIO, plain(BlockKind::DmaFifo)],
    chains: &[
        &[E(0), B(0, 0), B(2, 0), B(1, 0), E(0)],
        &[E(1), B(0, 1), B(2, 1), B(1, 1), E(1)],
        &[E(2), B(3, 0), E(2)],
        &[E(3), B(3, 1), E(3)],
    ],
    ..E320_RADIO
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_port_of_every_block_is_connected_once_on_either_side() {
        for device in DeviceKind::ALL {
            let it = device.personality();
            let mut ends: Vec<_> = it
                .edges()
                .flat_map(|e| [(true, e.src_index, e.src_port), (false, e.dst_index, e.dst_port)])
                .collect();
            ends.sort_unstable();
            let blocks = (0..).zip(it.blocks).flat_map(|(number, block)| {
                (0..block.ports).map(move |port| (it.index_of(number), port))
            });
            let places = (0..it.endpoints).map(|number| (1 + number, 0)).chain(blocks);
            let mut want: Vec<_> = places
                .flat_map(|(index, port)| [(true, index, port), (false, index, port)])
                .collect();
            want.sort_unstable();
            assert_eq!(ends, want, "{device:?}");
        }
    }
}
