//! Operation and status codes of control packets.

use crate::bits::fit;
use crate::{Error, Result};

/// The operation of a control packet on its register.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Op {
    /// 0: waits for data word 0 clock cycles.
    Sleep,
    /// 1: writes data word 0.
    Write,
    /// 2: reads one word.
    Read,
    /// 3: reads, then writes.
    ReadWrite,
    /// 4: writes all data words to consecutive addresses.
    BlockWrite,
    /// 5: reads consecutive addresses.
    BlockRead,
    /// 6: reads until a condition holds.
    Poll,
    /// 7 to 15: reserved or for the user. The code is preserved, because a device has to answer it
    /// with [`ControlStatus::CommandError`].
    Other(u8),
}

impl Op {
    /// Returns the 4-bit code on the wire.
    #[must_use]
    pub const fn code(self) -> u8 {
        match self {
            Op::Sleep => 0,
            Op::Write => 1,
            Op::Read => 2,
            Op::ReadWrite => 3,
            Op::BlockWrite => 4,
            Op::BlockRead => 5,
            Op::Poll => 6,
            Op::Other(code) => code,
        }
    }

    /// Returns the operation with the lowest four bits of `code`.
    #[must_use]
    pub const fn from_code(code: u8) -> Op {
        match code & 0xF {
            0 => Op::Sleep,
            1 => Op::Write,
            2 => Op::Read,
            3 => Op::ReadWrite,
            4 => Op::BlockWrite,
            5 => Op::BlockRead,
            6 => Op::Poll,
            other => Op::Other(other),
        }
    }

    /// Returns the code at its place in the operation word; [`Op::Other`] must not have the code of
    /// another variant.
    pub(super) const fn to_bits(self) -> Result<u64> {
        if let Op::Other(0..=6) = self {
            return Err(Error::FieldOverflow);
        }
        fit(self.code() as u64, 24, 4)
    }
}

/// The result of a request; 0 in requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum ControlStatus {
    /// 0: done.
    #[default]
    Ok,
    /// 1: the operation or address is not supported.
    CommandError,
    /// 2: the time of a timed request was missed.
    TimeError,
    /// 3: done, with a warning.
    Warning,
}

impl ControlStatus {
    /// Returns the 2-bit code on the wire.
    #[must_use]
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// Returns the status with the lowest two bits of `code`.
    #[must_use]
    pub const fn from_code(code: u8) -> ControlStatus {
        match code & 3 {
            0 => ControlStatus::Ok,
            1 => ControlStatus::CommandError,
            2 => ControlStatus::TimeError,
            _ => ControlStatus::Warning,
        }
    }
}
