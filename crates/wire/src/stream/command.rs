//! Stream command: a request or message from the sender of a stream to its receiver.

use crate::bits::{WordWriter, field, fit, get_u64, mask};
use crate::chdr::{Packet, PacketType, Width, header_len, put_plain_header};
use crate::{Epid, Error, Result};

/// The operation of a stream command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum CommandOp {
    /// 0: start counting at 0; the counts are the requested report period.
    #[default]
    Init,
    /// 1: send a status now.
    Ping,
    /// 2: the counts are the sender's totals before this packet; take them over.
    Resync,
}

impl CommandOp {
    /// Returns the 4-bit code on the wire.
    #[must_use]
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// Returns the operation with this code.
    ///
    /// # Errors
    /// [`Error::UnknownOp`].
    pub const fn from_code(code: u8) -> Result<CommandOp> {
        Ok(match code {
            0 => CommandOp::Init,
            1 => CommandOp::Ping,
            2 => CommandOp::Resync,
            _ => return Err(Error::UnknownOp),
        })
    }
}

/// A stream command packet (type 2, two payload words).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct CommandRepr {
    /// The endpoint that receives the stream.
    pub dst_epid: Epid,
    /// CHDR sequence number, counted per stream over command packets alone.
    pub seq: u16,
    /// The endpoint that sends the stream.
    pub src_epid: Epid,
    /// The operation.
    pub op: CommandOp,
    /// Operand of the operation, 4 bits; 0 in all defined operations.
    pub op_data: u8,
    /// Packets: period for [`CommandOp::Init`], total modulo 2⁴⁰ for [`CommandOp::Resync`].
    pub packets: u64,
    /// Bytes: period for [`CommandOp::Init`], total for [`CommandOp::Resync`].
    pub bytes: u64,
}

const PAYLOAD_LEN: usize = 2 * 8;

impl CommandRepr {
    /// Reads a stream command packet.
    ///
    /// # Errors
    /// [`Error::WrongPacketType`], [`Error::PayloadTooShort`], [`Error::UnknownOp`].
    pub fn parse(packet: &Packet<'_>) -> Result<CommandRepr> {
        let payload = packet.payload_of(PacketType::StreamCommand)?;
        let head = get_u64(payload, 0, Error::PayloadTooShort)?;
        let bytes = get_u64(payload, 8, Error::PayloadTooShort)?;
        Ok(CommandRepr {
            dst_epid: packet.header().dst_epid,
            seq: packet.header().seq,
            src_epid: Epid(field(head, 0, 16) as u16),
            op: CommandOp::from_code(field(head, 16, 4) as u8)?,
            op_data: field(head, 20, 4) as u8,
            packets: field(head, 24, 40),
            bytes,
        })
    }

    /// Returns the bytes of a stream command packet at this width.
    #[must_use]
    pub const fn packet_len(width: Width) -> usize {
        header_len(PacketType::StreamCommand, width) + PAYLOAD_LEN
    }

    /// Writes the packet and returns [`CommandRepr::packet_len`]. `packets` is reduced modulo 2⁴⁰,
    /// so a sender may count in 64 bits.
    ///
    /// # Errors
    /// [`Error::BufferTooSmall`], [`Error::FieldOverflow`].
    pub fn emit(&self, width: Width, buf: &mut [u8]) -> Result<usize> {
        let mut out = WordWriter::new(buf);
        let len = Self::packet_len(width);
        put_plain_header(PacketType::StreamCommand, self.dst_epid, self.seq, len, width, &mut out)?;
        out.put(
            u64::from(self.src_epid.0)
                | u64::from(self.op.code()) << 16
                | fit(self.op_data.into(), 20, 4)?
                | (self.packets & mask(40)) << 24,
        )?;
        out.put(self.bytes)?;
        Ok(len)
    }
}

impl core::fmt::Display for CommandRepr {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(
            f,
            "stream command {} to {} seq {} {:?} {} B / {} pkts",
            self.src_epid, self.dst_epid, self.seq, self.op, self.bytes, self.packets
        )
    }
}
