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

    /// Returns the header's fields.
    #[must_use]
    #[inline]
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Returns the packet type.
    #[must_use]
    #[inline]
    pub fn kind(&self) -> PacketType {
        self.header.kind
    }

    /// Returns the width at which the packet was parsed.
    #[must_use]
    #[inline]
    pub fn width(&self) -> Width {
        self.width
    }

    /// Returns the time of the first sample in ticks; only for [`PacketType::TimedData`].
    #[must_use]
    #[inline]
    pub fn timestamp(&self) -> Option<u64> {
        self.timestamp
    }

    /// Returns the metadata, `num_mdata` words of W bits; mostly empty.
    #[must_use]
    #[inline]
    pub fn metadata(&self) -> &'a [u8] {
        &self.bytes[self.header.len(self.width)..self.header.payload_offset(self.width)]
    }

    /// Returns the payload, up to the last byte that `Length` counts.
    #[must_use]
    #[inline]
    pub fn payload(&self) -> &'a [u8] {
        &self.bytes[self.header.payload_offset(self.width)..]
    }

    /// Returns the packet's length in flow control: `Length` rounded up to whole CHDR words.
    #[must_use]
    #[inline]
    pub fn flow_len(&self) -> usize {
        super::round_to_word(self.bytes.len(), self.width)
    }

    /// Returns the payload, if the packet is of this type.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Epid;

    /// Timed data, EOB, sequence 3, to endpoint 2: one sample at tick 0x12345678.
    const TIMED: [u8; 20] = [
        0x02, 0x00, 0x14, 0x00, 0x03, 0x00, 0xE0, 0x02, // header
        0x78, 0x56, 0x34, 0x12, 0x00, 0x00, 0x00, 0x00, // timestamp
        0x01, 0x00, 0xFF, 0xFF, // I = 1, Q = -1
    ];

    #[test]
    fn a_packet_is_taken_apart() {
        let packet = Packet::parse(&TIMED, Width::W64).unwrap();
        assert_eq!(packet.kind(), PacketType::TimedData);
        assert_eq!(packet.header().dst_epid, Epid(2));
        assert_eq!((packet.header().seq, packet.header().length), (3, 20));
        assert!(packet.header().eob && !packet.header().eov);
        assert_eq!(packet.timestamp(), Some(0x1234_5678));
        assert_eq!(packet.metadata(), []);
        assert_eq!(packet.payload(), [1, 0, 0xFF, 0xFF]);
        assert_eq!(packet.flow_len(), 24);
        assert_eq!(packet.to_string(), "timed data to 2 seq 3 len 20 eob time 305419896 payload 4");
    }

    #[test]
    fn the_timestamp_shares_the_header_word_above_64_bits() {
        let packet = Packet::parse(&TIMED, Width::W128).unwrap();
        assert_eq!(packet.timestamp(), Some(0x1234_5678));
        assert_eq!(packet.payload(), [1, 0, 0xFF, 0xFF]);
        assert_eq!(packet.flow_len(), 32);
        // At 256 bits the same Length ends inside the header word.
        assert_eq!(Packet::parse(&TIMED, Width::W256), Err(Error::LengthTooSmall));
    }

    #[test]
    fn a_datagram_may_be_longer_than_length_but_not_shorter() {
        let mut long = TIMED.to_vec();
        long.extend([0xEE; 9]);
        assert_eq!(Packet::parse(&long, Width::W64).unwrap().payload(), &TIMED[16..]);
        for len in 0..TIMED.len() {
            assert_eq!(Packet::parse(&TIMED[..len], Width::W64), Err(Error::Truncated), "{len}");
        }
    }

    #[test]
    fn a_length_that_does_not_cover_its_own_headers_is_refused() {
        let mut bytes = TIMED;
        for length in 0..16 {
            bytes[2] = length;
            assert_eq!(Packet::parse(&bytes, Width::W64), Err(Error::LengthTooSmall), "{length}");
        }
        bytes[2] = 16;
        assert_eq!(Packet::parse(&bytes, Width::W64).unwrap().payload(), []);
        // One metadata word more than fits.
        bytes[6] |= 1;
        assert_eq!(Packet::parse(&bytes, Width::W64), Err(Error::LengthTooSmall));
        bytes[6] |= 0x1F;
        bytes[2..4].copy_from_slice(&u16::MAX.to_le_bytes());
        assert_eq!(Packet::parse(&bytes, Width::W512), Err(Error::Truncated));
    }

    #[test]
    fn unassigned_packet_types_are_refused() {
        let mut bytes = TIMED;
        for code in [3, 5] {
            bytes[6] = code << 5;
            assert_eq!(Packet::parse(&bytes, Width::W64), Err(Error::UnknownPacketType));
        }
    }
}
