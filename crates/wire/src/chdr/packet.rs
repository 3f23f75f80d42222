//! The checked view over one CHDR packet.

use super::{Header, PacketType, Width};
use crate::bits::get_u64;
use crate::{Error, Result};

/// A CHDR packet whose sizes are consistent.
///
/// The view covers `Length` bytes; a datagram may be longer, never shorter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Packet<'a> {
    bytes: &'a [u8],
    header: Header,
    width: Width,
    timestamp: Option<u64>,
}

impl<'a> Packet<'a> {
    /// Checks the bytes of one datagram.
    ///
    /// # Errors
    /// [`Error::Truncated`], [`Error::UnknownPacketType`], [`Error::LengthTooSmall`].
    #[inline]
    pub fn parse(bytes: &'a [u8], width: Width) -> Result<Packet<'a>> {
        let header = Header::from_word(get_u64(bytes, 0, Error::Truncated)?)?;
        let length = usize::from(header.length);
        if length < header.payload_offset(width) {
            return Err(Error::LengthTooSmall);
        }
        let bytes = bytes.get(..length).ok_or(Error::Truncated)?;
        let timestamp = match header.kind {
            // At W = 64 the next word, above that the second lane of the header word.
            PacketType::TimedData => Some(get_u64(bytes, 8, Error::Truncated)?),
            _ => None,
        };
        Ok(Packet { bytes, header, width, timestamp })
    }

    /// The header's fields.
    #[must_use]
    #[inline]
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// The packet type.
    #[must_use]
    #[inline]
    pub fn kind(&self) -> PacketType {
        self.header.kind
    }

    /// The width the packet was parsed at.
    #[must_use]
    #[inline]
    pub fn width(&self) -> Width {
        self.width
    }

    /// The time of the first sample in ticks, of [`PacketType::TimedData`] only.
    #[must_use]
    #[inline]
    pub fn timestamp(&self) -> Option<u64> {
        self.timestamp
    }

    /// The metadata, `num_mdata` words of W bits; mostly empty.
    #[must_use]
    #[inline]
    pub fn metadata(&self) -> &'a [u8] {
        &self.bytes[self.header.len(self.width)..self.header.payload_offset(self.width)]
    }

    /// The payload, through the last byte that `Length` counts.
    #[must_use]
    #[inline]
    pub fn payload(&self) -> &'a [u8] {
        &self.bytes[self.header.payload_offset(self.width)..]
    }

    /// What this packet counts in flow control: `Length` rounded up to whole CHDR words.
    #[must_use]
    #[inline]
    pub fn flow_len(&self) -> usize {
        super::round_to_word(self.bytes.len(), self.width)
    }

    /// The payload, if the packet is of this type.
    pub(crate) fn payload_of(&self, kind: PacketType) -> Result<&'a [u8]> {
        if self.header.kind == kind { Ok(self.payload()) } else { Err(Error::WrongPacketType) }
    }
}

impl core::fmt::Display for Packet<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{}", self.header)?;
        if let Some(ticks) = self.timestamp {
            write!(f, " time {ticks}")?;
        }
        write!(f, " payload {}", self.payload().len())
    }
}
