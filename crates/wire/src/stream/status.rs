//! Stream status: how much the receiver of a stream has consumed, and its capacity.

use crate::bits::{WordWriter, field, fit, get_u64, mask};
use crate::chdr::{Packet, PacketType, Width, header_len, put_plain_header};
use crate::{Epid, Error, Result};

/// The condition of a stream at its receiver.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum StreamCondition {
    /// 0: no error.
    #[default]
    Ok,
    /// 1: a stream command was invalid.
    CommandError,
    /// 2: a sequence number was skipped.
    SequenceError,
    /// 3: a packet arrived damaged.
    DataError,
    /// 4: a packet for another endpoint arrived.
    RoutingError,
}

impl StreamCondition {
    /// Returns the 4-bit code on the wire.
    #[must_use]
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// Returns the status with this code.
    ///
    /// # Errors
    /// [`Error::UnknownStatus`].
    pub const fn from_code(code: u8) -> Result<StreamCondition> {
        Ok(match code {
            0 => StreamCondition::Ok,
            1 => StreamCondition::CommandError,
            2 => StreamCondition::SequenceError,
            3 => StreamCondition::DataError,
            4 => StreamCondition::RoutingError,
            _ => return Err(Error::UnknownStatus),
        })
    }
}

/// A stream status packet (type 1, four payload words).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct StatusRepr {
    /// The endpoint that sends the stream.
    pub dst_epid: Epid,
    /// CHDR sequence number, counted per stream over status packets alone.
    pub seq: u16,
    /// The endpoint that receives the stream.
    pub src_epid: Epid,
    /// Condition of the stream.
    pub status: StreamCondition,
    /// The receiver's capacity in bytes, 40 bits.
    pub capacity_bytes: u64,
    /// The receiver's capacity in packets, 24 bits; see [`super::PACKETS_UNLIMITED`].
    pub capacity_packets: u32,
    /// Packets consumed since initialisation, modulo 2⁴⁰.
    pub count_packets: u64,
    /// Bytes consumed since initialisation, whole CHDR words per packet.
    pub count_bytes: u64,
    /// Buffer information, with a meaning of the device.
    pub buffer_info: u16,
    /// Detail, 48 bits: [`SequenceGap`] of a sequence error, [`StreamPlace`] of an endpoint.
    pub error_info: u64,
}

/// The detail of [`StreamCondition::SequenceError`]: the number of the packet, and the expected
/// one.
///
/// Stream input endpoints of UHD's images check data packets and stream commands separately, at the
/// end of their buffer, and report each packet whose number is not one more than the last one's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SequenceGap {
    /// The type of the packet: data, with or without time, or a stream command.
    pub kind: PacketType,
    /// The expected number.
    pub expected: u16,
    /// The packet's number.
    pub actual: u16,
}

impl SequenceGap {
    /// Encodes the detail for [`StatusRepr::error_info`].
    #[must_use]
    pub const fn to_info(self) -> u64 {
        (self.kind.code() as u64) << 32 | (self.expected as u64) << 16 | self.actual as u64
    }

    /// Decodes a detail; `None` without a numbered packet or a gap.
    #[must_use]
    pub fn from_info(info: u64) -> Option<Self> {
        let kind = PacketType::from_code(field(info, 32, 3) as u8).ok()?;
        let numbered =
            matches!(kind, PacketType::Data | PacketType::TimedData | PacketType::StreamCommand);
        let (expected, actual) = (field(info, 16, 16) as u16, field(info, 0, 16) as u16);
        (numbered && expected != actual).then_some(Self { kind, expected, actual })
    }
}

/// The detail of [`StreamCondition::Ok`] from stream input endpoints of UHD's images.
///
/// It is of the moment at which a command or a period of reports caused the status. The counts are
/// later ones: those of the moments at which their words leave.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct StreamPlace {
    /// A period is over; otherwise the status answers the command.
    pub period: bool,
    /// The number of the next data packet.
    pub expected: u16,
    /// The number of the last stream command.
    pub command: u16,
}

impl StreamPlace {
    /// Encodes the detail for [`StatusRepr::error_info`].
    #[must_use]
    pub const fn to_info(self) -> u64 {
        (self.period as u64) << 47 | (self.expected as u64) << 16 | self.command as u64
    }

    /// Decodes a detail.
    #[must_use]
    pub const fn from_info(info: u64) -> Self {
        Self { period: info >> 47 & 1 == 1, expected: (info >> 16) as u16, command: info as u16 }
    }
}

const PAYLOAD_LEN: usize = 4 * 8;

impl StatusRepr {
    /// Reads a stream status packet.
    ///
    /// # Errors
    /// [`Error::WrongPacketType`], [`Error::PayloadTooShort`], [`Error::UnknownStatus`].
    pub fn parse(packet: &Packet<'_>) -> Result<StatusRepr> {
        let payload = packet.payload_of(PacketType::StreamStatus)?;
        let word = |index: usize| get_u64(payload, index * 8, Error::PayloadTooShort);
        let (capacity, packets, bytes, detail) = (word(0)?, word(1)?, word(2)?, word(3)?);
        Ok(StatusRepr {
            dst_epid: packet.header().dst_epid,
            seq: packet.header().seq,
            src_epid: Epid(field(capacity, 0, 16) as u16),
            status: StreamCondition::from_code(field(capacity, 16, 4) as u8)?,
            capacity_bytes: field(capacity, 24, 40),
            capacity_packets: field(packets, 0, 24) as u32,
            count_packets: field(packets, 24, 40),
            count_bytes: bytes,
            buffer_info: field(detail, 0, 16) as u16,
            error_info: field(detail, 16, 48),
        })
    }

    /// Returns the bytes of a stream status packet at this width.
    #[must_use]
    pub const fn packet_len(width: Width) -> usize {
        header_len(PacketType::StreamStatus, width) + PAYLOAD_LEN
    }

    /// Writes the packet and returns [`StatusRepr::packet_len`]. `count_packets` is reduced modulo
    /// 2⁴⁰, so a sender may count in 64 bits.
    ///
    /// # Errors
    /// [`Error::BufferTooSmall`], [`Error::FieldOverflow`].
    pub fn emit(&self, width: Width, buf: &mut [u8]) -> Result<usize> {
        let mut out = WordWriter::new(buf);
        let len = Self::packet_len(width);
        put_plain_header(PacketType::StreamStatus, self.dst_epid, self.seq, len, width, &mut out)?;
        out.put(
            u64::from(self.src_epid.0)
                | u64::from(self.status.code()) << 16
                | fit(self.capacity_bytes, 24, 40)?,
        )?;
        let packets = (self.count_packets & mask(40)) << 24;
        out.put(fit(self.capacity_packets.into(), 0, 24)? | packets)?;
        out.put(self.count_bytes)?;
        out.put(u64::from(self.buffer_info) | fit(self.error_info, 16, 48)?)?;
        Ok(len)
    }
}

impl core::fmt::Display for StatusRepr {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(
            f,
            "stream status {} to {} seq {} {:?} consumed {} B / {} pkts of {} B / {} pkts",
            self.src_epid,
            self.dst_epid,
            self.seq,
            self.status,
            self.count_bytes,
            self.count_packets,
            self.capacity_bytes,
            self.capacity_packets
        )
    }
}
