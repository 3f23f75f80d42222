//! The 64-bit CHDR header.

use super::Width;
use crate::bits::{WordWriter, field, fit};
use crate::{Epid, Error, Result};

/// The type of a packet, `[55:53]` of the header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum PacketType {
    /// 0: topology and stream endpoint registers, see [`crate::mgmt`].
    Management,
    /// 1: credit from the receiver of a stream, see [`crate::stream::StatusRepr`].
    StreamStatus,
    /// 2: from the sender of a stream, see [`crate::stream::CommandRepr`].
    StreamCommand,
    /// 4: block registers and asynchronous messages, see [`crate::ctrl`].
    Control,
    /// 6: samples without time.
    #[default]
    Data,
    /// 7: samples, with the time of the first.
    TimedData,
}

impl PacketType {
    /// Returns the 3-bit code on the wire.
    #[must_use]
    #[inline]
    pub const fn code(self) -> u8 {
        match self {
            PacketType::Management => 0,
            PacketType::StreamStatus => 1,
            PacketType::StreamCommand => 2,
            PacketType::Control => 4,
            PacketType::Data => 6,
            PacketType::TimedData => 7,
        }
    }

    /// Returns the type with this code.
    ///
    /// # Errors
    /// [`Error::UnknownPacketType`] for the codes that are not assigned.
    #[inline]
    pub const fn from_code(code: u8) -> Result<PacketType> {
        Ok(match code {
            0 => PacketType::Management,
            1 => PacketType::StreamStatus,
            2 => PacketType::StreamCommand,
            4 => PacketType::Control,
            6 => PacketType::Data,
            7 => PacketType::TimedData,
            _ => return Err(Error::UnknownPacketType),
        })
    }

    /// Returns whether packets of this type carry samples.
    #[must_use]
    #[inline]
    pub const fn is_data(self) -> bool {
        matches!(self, PacketType::Data | PacketType::TimedData)
    }
}

impl core::fmt::Display for PacketType {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            PacketType::Management => "management",
            PacketType::StreamStatus => "stream status",
            PacketType::StreamCommand => "stream command",
            PacketType::Control => "control",
            PacketType::Data => "data",
            PacketType::TimedData => "timed data",
        })
    }
}

/// The fields of the first 64 bits of every packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Header {
    /// `[63:58]` virtual channel; 0 in all current devices.
    pub vc: u8,
    /// `[57]` end of burst.
    pub eob: bool,
    /// `[56]` end of vector; the user defines its meaning.
    pub eov: bool,
    /// `[55:53]` packet type.
    pub kind: PacketType,
    /// `[52:48]` number of W-bit metadata words.
    pub num_mdata: u8,
    /// `[47:32]` sequence number, counted per stream and packet class, wraps at 2¹⁶.
    pub seq: u16,
    /// `[31:16]` bytes from the header through the last payload byte.
    pub length: u16,
    /// `[15:0]` destination endpoint.
    pub dst_epid: Epid,
}

impl Header {
    /// Decodes a header word.
    ///
    /// # Errors
    /// [`Error::UnknownPacketType`].
    #[inline]
    pub const fn from_word(word: u64) -> Result<Header> {
        let kind = match PacketType::from_code(field(word, 53, 3) as u8) {
            Ok(kind) => kind,
            Err(error) => return Err(error),
        };
        Ok(Header {
            vc: field(word, 58, 6) as u8,
            eob: field(word, 57, 1) != 0,
            eov: field(word, 56, 1) != 0,
            kind,
            num_mdata: field(word, 48, 5) as u8,
            seq: field(word, 32, 16) as u16,
            length: field(word, 16, 16) as u16,
            dst_epid: Epid(field(word, 0, 16) as u16),
        })
    }

    /// Reads the header from the first word of a packet; the rest may be cut off or wrong.
    ///
    /// # Errors
    /// [`Error::Truncated`], [`Error::UnknownPacketType`].
    #[inline]
    pub fn peek(bytes: &[u8]) -> Result<Header> {
        let word = bytes.first_chunk().ok_or(Error::Truncated)?;
        Header::from_word(u64::from_le_bytes(*word))
    }

    /// Encodes a header word.
    ///
    /// # Errors
    /// [`Error::FieldOverflow`] if `vc` needs more than 6 or `num_mdata` more than 5 bits.
    #[inline]
    pub fn to_word(self) -> Result<u64> {
        Ok(fit(self.vc.into(), 58, 6)?
            | u64::from(self.eob) << 57
            | u64::from(self.eov) << 56
            | u64::from(self.kind.code()) << 53
            | fit(self.num_mdata.into(), 48, 5)?
            | u64::from(self.seq) << 32
            | u64::from(self.length) << 16
            | u64::from(self.dst_epid.0))
    }

    /// Returns the bytes of header and timestamp at this width: the offset of metadata or payload.
    #[must_use]
    #[inline]
    pub const fn len(&self, width: Width) -> usize {
        header_len(self.kind, width)
    }

    /// Returns the bytes before the payload: header, timestamp and metadata.
    #[must_use]
    #[inline]
    pub const fn payload_offset(&self, width: Width) -> usize {
        self.len(width) + self.num_mdata as usize * width.bytes()
    }

    /// Writes header and, for [`PacketType::TimedData`] only, `timestamp`; returns [`Header::len`],
    /// the offset of metadata (if announced) and payload.
    ///
    /// # Errors
    /// [`Error::BufferTooSmall`], [`Error::FieldOverflow`] as for [`Header::to_word`].
    #[inline]
    pub fn emit(&self, timestamp: u64, width: Width, buf: &mut [u8]) -> Result<usize> {
        let mut out = WordWriter::new(buf);
        put_header(self, timestamp, width, &mut out)?;
        Ok(out.len())
    }
}

/// Returns the bytes of header and timestamp of a packet of this type.
#[inline]
pub(crate) const fn header_len(kind: PacketType, width: Width) -> usize {
    match (width, kind) {
        (Width::W64, PacketType::TimedData) => 16,
        _ => width.bytes(),
    }
}

/// Writes the header word(s) of `header`, see [`Header::emit`].
#[inline]
pub(crate) fn put_header(
    header: &Header,
    timestamp: u64,
    width: Width,
    out: &mut WordWriter<'_>,
) -> Result<()> {
    let word = header.to_word()?;
    let timed = matches!(header.kind, PacketType::TimedData);
    if !timed {
        return out.put_padded(word, width.bytes());
    }
    out.put(word)?;
    let lanes_left = if width == Width::W64 { 8 } else { width.bytes() - 8 };
    out.put_padded(timestamp, lanes_left)
}

/// Writes the header of a packet without timestamp and metadata whose length is known.
pub(crate) fn put_plain_header(
    kind: PacketType,
    dst_epid: Epid,
    seq: u16,
    packet_len: usize,
    width: Width,
    out: &mut WordWriter<'_>,
) -> Result<()> {
    let length = u16::try_from(packet_len).map_err(|_| Error::PacketTooLong)?;
    let header = Header { kind, seq, length, dst_epid, ..Header::default() };
    put_header(&header, 0, width, out)
}

impl core::fmt::Display for Header {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{} to {} seq {} len {}", self.kind, self.dst_epid, self.seq, self.length)?;
        if self.vc != 0 {
            write!(f, " vc {}", self.vc)?;
        }
        if self.num_mdata != 0 {
            write!(f, " mdata {}", self.num_mdata)?;
        }
        if self.eob {
            f.write_str(" eob")?;
        }
        if self.eov {
            f.write_str(" eov")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_has_its_place() {
        let header = Header {
            vc: 0x2A,
            eob: true,
            eov: false,
            kind: PacketType::Control,
            num_mdata: 0x15,
            seq: 0xBEEF,
            length: 0x1234,
            dst_epid: Epid(0x5678),
        };
        let word = 0x2A << 58 | 1 << 57 | 4 << 53 | 0x15 << 48 | 0xBEEF_1234_5678;
        assert_eq!(header.to_word(), Ok(word));
        assert_eq!(Header::from_word(word), Ok(header));
        assert_eq!(Header::peek(&word.to_le_bytes()), Ok(header));
        assert_eq!(Header::peek(&[0; 7]), Err(Error::Truncated));
        assert_eq!(header.to_string(), "control to 22136 seq 48879 len 4660 vc 42 mdata 21 eob");
    }

    #[test]
    fn values_that_do_not_fit_are_not_cut_off() {
        let vc = Header { vc: 64, ..Header::default() };
        assert_eq!(vc.to_word(), Err(Error::FieldOverflow));
        let mdata = Header { num_mdata: 32, ..Header::default() };
        assert_eq!(mdata.to_word(), Err(Error::FieldOverflow));
    }

    #[test]
    fn every_assigned_type_code_is_read_back() {
        let known: Vec<u8> = (0..8).filter(|&c| PacketType::from_code(c).is_ok()).collect();
        assert_eq!(known, [0, 1, 2, 4, 6, 7]);
        for code in known {
            assert_eq!(PacketType::from_code(code).unwrap().code(), code);
        }
    }
}
