//! One operation of a hop.

use super::NodeInfo;
use crate::bits::field;
use crate::{Error, Result};

/// A management operation with its operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Op {
    /// 0: no operation; for the hop of a node that only forwards, or of the host itself.
    #[default]
    Nop,
    /// 1: store the packet's UDP source address for its source endpoint.
    Advertise,
    /// 2: leave the crossbar by this output port.
    SelDest(u16),
    /// 3: send the packet back to its source.
    Return,
    /// 4: request the node's description.
    InfoReq,
    /// 5: the node's description.
    InfoResp(NodeInfo),
    /// 6: write a register.
    CfgWrite {
        /// Register address; see [`crate::regs::sep`]. In a crossbar, the endpoint id.
        address: u16,
        /// Value; in a crossbar, the output port.
        value: u32,
    },
    /// 7: read a register.
    CfgRead {
        /// Register address.
        address: u16,
    },
    /// 8: the content of a register.
    CfgReadResp {
        /// Register address.
        address: u16,
        /// Value read.
        value: u32,
    },
}

impl Op {
    /// Returns the 8-bit operation code.
    #[must_use]
    pub const fn code(&self) -> u8 {
        match self {
            Op::Nop => 0,
            Op::Advertise => 1,
            Op::SelDest(_) => 2,
            Op::Return => 3,
            Op::InfoReq => 4,
            Op::InfoResp(_) => 5,
            Op::CfgWrite { .. } => 6,
            Op::CfgRead { .. } => 7,
            Op::CfgReadResp { .. } => 8,
        }
    }

    /// Returns whether the operation is an answer, which nodes on the path do not execute.
    #[must_use]
    pub const fn is_response(&self) -> bool {
        matches!(self, Op::InfoResp(_) | Op::CfgReadResp { .. })
    }

    fn operand(&self) -> Result<u64> {
        Ok(match *self {
            Op::Nop | Op::Advertise | Op::Return | Op::InfoReq => 0,
            Op::SelDest(port) => port.into(),
            Op::InfoResp(info) => info.to_operand()?,
            Op::CfgRead { address } => address.into(),
            Op::CfgWrite { address, value } | Op::CfgReadResp { address, value } => {
                u64::from(address) | u64::from(value) << 16
            }
        })
    }

    /// Returns the item of this operation, with `to_come` more in its hop.
    pub(super) fn to_item(self, to_come: u8) -> Result<u64> {
        Ok(u64::from(to_come) | u64::from(self.code()) << 8 | self.operand()? << 16)
    }

    /// Decodes the operation of an item, and the number of further ones in its hop.
    pub(super) fn from_item(item: u64) -> Result<(Op, u8)> {
        let operand = item >> 16;
        let address = operand as u16;
        let value = (operand >> 16) as u32;
        let op = match field(item, 8, 8) {
            0 => Op::Nop,
            1 => Op::Advertise,
            2 => Op::SelDest(address),
            3 => Op::Return,
            4 => Op::InfoReq,
            5 => Op::InfoResp(NodeInfo::from_operand(operand)),
            6 => Op::CfgWrite { address, value },
            7 => Op::CfgRead { address },
            8 => Op::CfgReadResp { address, value },
            _ => return Err(Error::UnknownOp),
        };
        Ok((op, item as u8))
    }
}
