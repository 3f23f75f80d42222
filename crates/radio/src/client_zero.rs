//! Client zero: the device's list of blocks and connections.

use std::time::Duration;

use millstream_wire::ctrl::{CLIENT_ZERO_PORT, block_port};
use millstream_wire::regs::client_zero::{
    ADJACENCY, BLOCK_FLUSH_STATUS, BLOCK_INFO, BLOCK_NOC_ID, BlockInfo, CTRL_ENDPOINTS, Counts,
    DEVICE_INFO, Edge, FLUSH, FlushStatus, PORT_CONFIG, PROTO_VER, RESET_CTRL, RESET_DATA,
    index_register, noc_id,
};

use crate::RadioError;
use crate::control::Registers;

/// The most edges of a device; a longer list is not an adjacency list.
const EDGES_MAX: u32 = 1024;

/// The blocks of a device and their connections, as the host needs them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientZero {
    /// RFNoC protocol version, major in the upper byte.
    pub protocol: u16,
    /// The kind of device, see [`millstream_wire::regs::client_zero::device_type`].
    pub device_type: u16,
    /// The number of stream endpoints; their indices are 1 to this.
    pub endpoints: u16,
    /// The blocks in the order of their indices.
    pub blocks: Vec<DeviceBlock>,
    /// Static connections.
    pub edges: Vec<Edge>,
}

/// A block of the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeviceBlock {
    /// Its index among client zero, endpoints and blocks.
    pub index: u16,
    /// Its control port.
    pub port: u16,
    /// Its kind, see [`millstream_wire::regs::client_zero::noc_id`].
    pub noc_id: u32,
    /// Its numbers of inputs and outputs.
    pub info: BlockInfo,
    /// The largest packet that it produces, log2 of CHDR words.
    pub mtu_log2: u8,
}

impl ClientZero {
    /// Reads the blocks and edges of a device.
    ///
    /// # Errors
    /// Those of [`Registers::read`].
    pub fn read(control: &impl Registers) -> Result<Self, RadioError> {
        let read = |address| control.read(CLIENT_ZERO_PORT, address);
        let protocol = read(PROTO_VER)? as u16;
        let counts = Counts::from_word(read(PORT_CONFIG)?);
        let device_type = (read(DEVICE_INFO)? >> 16) as u16;
        let control_endpoints = (read(CTRL_ENDPOINTS)? & 0x3FF) as u16;
        let entries = (read(ADJACENCY)? & 0x3FFF).min(EDGES_MAX);
        let edges = (1..=entries)
            .map(|entry| Ok(Edge::from_word(read(ADJACENCY + 4 * entry)?)))
            .collect::<Result<_, RadioError>>()?;
        let blocks = (0..counts.blocks)
            .map(|block| {
                let index = 1 + counts.endpoints + block;
                let register = |offset| read(index_register(index, offset));
                Ok(DeviceBlock {
                    index,
                    port: block_port(control_endpoints, block),
                    noc_id: register(BLOCK_NOC_ID)?,
                    info: BlockInfo::from_word(register(BLOCK_INFO)?),
                    mtu_log2: FlushStatus::from_word(register(BLOCK_FLUSH_STATUS)?).mtu_log2,
                })
            })
            .collect::<Result<_, RadioError>>()?;
        Ok(Self { protocol, device_type, endpoints: counts.endpoints, blocks, edges })
    }

    /// Returns the block of an index; `None` for client zero, an endpoint, or an index too large.
    pub fn block(&self, index: u16) -> Option<&DeviceBlock> {
        self.blocks.iter().find(|block| block.index == index)
    }

    /// Returns the name of an index: `Radio#0`, `endpoint 2`. Blocks of a kind are counted from 0,
    /// as in UHD; a block of an unknown kind has its NoC id as the name.
    pub fn name(&self, index: u16) -> String {
        match self.block(index) {
            Some(block) => {
                let same = |one: &&DeviceBlock| one.noc_id == block.noc_id && one.index < index;
                let number = self.blocks.iter().filter(same).count();
                match noc_id::name(block.noc_id) {
                    Some(kind) => format!("{kind}#{number}"),
                    None => format!("{:08X}#{number}", block.noc_id),
                }
            }
            None if index == 0 => "client zero".to_owned(),
            None if index <= self.endpoints => format!("endpoint {}", index - 1),
            None => format!("index {index}"),
        }
    }
}

/// The time within which a flush counts as done when nothing comes, clock cycles, as UHD writes it;
/// a block begins with 0.
const FLUSH_CYCLES: u32 = 100;

/// The attempts to see the flushes of blocks end, a pause apart.
const FLUSH_POLLS: u32 = 100;
const FLUSH_PAUSE: Duration = Duration::from_millis(1);

/// Empties the queues of blocks, and resets the blocks one by one.
///
/// Samples must reach each of them from those before it: a block that is reset in front of a source
/// which still runs keeps the rest of a packet, and takes it for the head of the next one. A flush
/// that does not end is no error: behind a stream whose host has gone, only the reset ends it.
///
/// # Errors
/// Those of [`Registers::write`].
pub fn reset(control: &impl Registers, blocks: &[DeviceBlock]) -> Result<(), RadioError> {
    let register = |block: &DeviceBlock, offset| index_register(block.index, offset);
    let write = |block: &DeviceBlock, offset, value| {
        control.write(CLIENT_ZERO_PORT, register(block, offset), value)
    };
    for block in blocks {
        write(block, BLOCK_INFO, FLUSH_CYCLES)?;
        write(block, BLOCK_NOC_ID, 0)?;
        write(block, BLOCK_NOC_ID, FLUSH)?;
    }
    let mut flushing = blocks;
    for _ in 0..FLUSH_POLLS {
        let Some((first, rest)) = flushing.split_first() else { break };
        let word = control.read(CLIENT_ZERO_PORT, register(first, BLOCK_FLUSH_STATUS))?;
        if FlushStatus::from_word(word).done {
            flushing = rest;
        } else {
            std::thread::sleep(FLUSH_PAUSE);
        }
    }
    for block in blocks {
        for value in [0, RESET_CTRL | RESET_DATA, 0] {
            write(block, BLOCK_NOC_ID, value)?;
        }
    }
    Ok(())
}
