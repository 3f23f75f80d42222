//! IPv4 headers (RFC 791; RFC 6864 for the identification of datagrams that are never fragmented).

use core::net::Ipv4Addr;

use crate::bits::{be16, ipv4};
use crate::checksum::Sum;
use crate::{Error, Result};

/// Protocol numbers of payloads.
pub mod protocol {
    /// Internet control messages, see [`crate::icmp`].
    pub const ICMP: u8 = 1;
    /// User datagrams, see [`crate::udp`].
    pub const UDP: u8 = 17;
}

/// Bytes of a header without options.
pub const HEADER_LEN: usize = 20;

const DONT_FRAGMENT: u16 = 0x4000;
const MORE_FRAGMENTS: u16 = 0x2000;
const OFFSET: u16 = 0x1FFF;

/// A header, including options, that is complete and consistent.
///
/// The packet behind it may be incomplete: [`Header::payload`] checks that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header<'a> {
    bytes: &'a [u8],
}

impl<'a> Header<'a> {
    /// Checks the header at the start of `bytes`, but not its checksum.
    ///
    /// # Errors
    /// [`Error::Truncated`], [`Error::BadVersion`], [`Error::BadHeaderLength`],
    /// [`Error::LengthTooSmall`] when the total length does not cover the header.
    #[inline]
    pub fn parse(bytes: &'a [u8]) -> Result<Header<'a>> {
        if bytes.len() < HEADER_LEN {
            return Err(Error::Truncated);
        }
        if bytes[0] >> 4 != 4 {
            return Err(Error::BadVersion);
        }
        let len = usize::from(bytes[0] & 0xF) * 4;
        if len < HEADER_LEN {
            return Err(Error::BadHeaderLength);
        }
        if usize::from(be16(bytes, 2)) < len {
            return Err(Error::LengthTooSmall);
        }
        let bytes = bytes.get(..len).ok_or(Error::Truncated)?;
        Ok(Header { bytes })
    }

    /// Returns the bytes of the header, options included.
    #[must_use]
    #[inline]
    pub fn header_len(&self) -> usize {
        self.bytes.len()
    }

    /// Returns the bytes of the packet, header included.
    #[must_use]
    #[inline]
    pub fn total_len(&self) -> usize {
        usize::from(be16(self.bytes, 2))
    }

    /// Returns the bytes behind the header.
    #[must_use]
    #[inline]
    pub fn payload_len(&self) -> usize {
        self.total_len() - self.header_len()
    }

    /// Returns whether it is a fragment of a packet.
    #[must_use]
    #[inline]
    pub fn is_fragment(&self) -> bool {
        be16(self.bytes, 6) & (MORE_FRAGMENTS | OFFSET) != 0
    }

    /// Returns whether it is the first or only fragment, which begins with the payload's header.
    #[must_use]
    #[inline]
    pub fn is_first(&self) -> bool {
        be16(self.bytes, 6) & OFFSET == 0
    }

    /// Returns the payload's protocol, one of [`protocol`] or another.
    #[must_use]
    #[inline]
    pub fn protocol(&self) -> u8 {
        self.bytes[9]
    }

    /// Returns the source address.
    #[must_use]
    #[inline]
    pub fn source(&self) -> Ipv4Addr {
        ipv4(self.bytes, 12)
    }

    /// Returns the destination address.
    #[must_use]
    #[inline]
    pub fn destination(&self) -> Ipv4Addr {
        ipv4(self.bytes, 16)
    }

    /// Returns the options, uninterpreted.
    #[must_use]
    pub fn options(&self) -> &'a [u8] {
        &self.bytes[HEADER_LEN..]
    }

    /// Returns whether its checksum is right.
    #[must_use]
    #[inline]
    pub fn is_whole(&self) -> bool {
        Sum::new().bytes(self.bytes).is_whole()
    }

    /// Returns the payload from the bytes that the header was parsed from.
    ///
    /// # Errors
    /// [`Error::Truncated`] if they end before the packet does.
    #[inline]
    pub fn payload<'b>(&self, packet: &'b [u8]) -> Result<&'b [u8]> {
        packet.get(self.header_len()..self.total_len()).ok_or(Error::Truncated)
    }

    /// Returns the fields that a host uses, without options.
    #[must_use]
    pub fn repr(&self) -> Ipv4Repr {
        Ipv4Repr {
            source: self.source(),
            destination: self.destination(),
            protocol: self.protocol(),
            hop_limit: self.bytes[8],
            traffic_class: self.bytes[1],
            id: be16(self.bytes, 4),
            payload_len: self.payload_len(),
        }
    }
}

/// A header without options, of a packet that must not be fragmented.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ipv4Repr {
    /// The source address.
    pub source: Ipv4Addr,
    /// The destination address.
    pub destination: Ipv4Addr,
    /// The payload's protocol.
    pub protocol: u8,
    /// "Time to live": the most routers on the path.
    pub hop_limit: u8,
    /// "Type of service": DSCP and ECN.
    pub traffic_class: u8,
    /// Identification; without meaning in a packet that is never fragmented (RFC 6864, 4.1).
    pub id: u16,
    /// Bytes behind the header.
    pub payload_len: usize,
}

impl Ipv4Repr {
    /// Writes a header of [`HEADER_LEN`] bytes, with "don't fragment" and its checksum.
    ///
    /// # Errors
    /// [`Error::BufferTooSmall`], [`Error::PacketTooLong`].
    pub fn emit(&self, buf: &mut [u8]) -> Result<usize> {
        let buf = buf.get_mut(..HEADER_LEN).ok_or(Error::BufferTooSmall)?;
        let total = self.payload_len.checked_add(HEADER_LEN).map(u16::try_from);
        let Some(Ok(total)) = total else { return Err(Error::PacketTooLong) };
        buf[0] = 0x45;
        buf[1] = self.traffic_class;
        buf[2..4].copy_from_slice(&total.to_be_bytes());
        buf[4..6].copy_from_slice(&self.id.to_be_bytes());
        buf[6..8].copy_from_slice(&DONT_FRAGMENT.to_be_bytes());
        buf[8] = self.hop_limit;
        buf[9] = self.protocol;
        buf[10..12].fill(0);
        buf[12..16].copy_from_slice(&self.source.octets());
        buf[16..20].copy_from_slice(&self.destination.octets());
        let checksum = Sum::new().bytes(buf).checksum();
        buf[10..12].copy_from_slice(&checksum.to_be_bytes());
        Ok(HEADER_LEN)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header() -> [u8; HEADER_LEN] {
        let repr = Ipv4Repr {
            source: Ipv4Addr::new(10, 0, 0, 1),
            destination: Ipv4Addr::new(10, 0, 0, 2),
            protocol: protocol::UDP,
            hop_limit: 64,
            traffic_class: 0,
            id: 7,
            payload_len: 8,
        };
        let mut bytes = [0xAA; HEADER_LEN];
        repr.emit(&mut bytes).unwrap();
        assert_eq!(Header::parse(&bytes).unwrap().repr(), repr);
        bytes
    }

    #[test]
    fn a_header_that_contradicts_itself_is_refused() {
        let changed = |at: usize, value: u8| {
            let mut bytes = header();
            bytes[at] = value;
            Header::parse(&bytes).map(|header| header.total_len())
        };
        assert_eq!(changed(0, 0x65), Err(Error::BadVersion));
        assert_eq!(changed(0, 0x44), Err(Error::BadHeaderLength));
        assert_eq!(changed(0, 0x46), Err(Error::Truncated));
        assert_eq!(changed(3, 19), Err(Error::LengthTooSmall));
        assert_eq!(changed(3, 20), Ok(20));
        assert_eq!(Header::parse(&header()[..19]), Err(Error::Truncated));
    }

    #[test]
    fn a_fragment_is_one_with_an_offset_or_with_more_to_come() {
        let flags = |value: u16| {
            let mut bytes = header();
            bytes[6..8].copy_from_slice(&value.to_be_bytes());
            let header = Header::parse(&bytes).unwrap();
            (header.is_fragment(), header.is_first())
        };
        assert_eq!(flags(0), (false, true));
        assert_eq!(flags(DONT_FRAGMENT), (false, true));
        assert_eq!(flags(MORE_FRAGMENTS), (true, true));
        assert_eq!(flags(185), (true, false));
        // The reserved bit is harmless.
        assert_eq!(flags(0x8000), (false, true));
    }

    #[test]
    fn every_flipped_bit_shows_in_the_checksum() {
        for bit in 0..HEADER_LEN * 8 {
            let mut bytes = header();
            bytes[bit / 8] ^= 1 << (bit % 8);
            let whole = Header::parse(&bytes).is_ok_and(|header| header.is_whole());
            assert!(!whole, "bit {bit}");
        }
    }

    #[test]
    fn a_packet_longer_than_its_length_field_is_refused() {
        let repr = Ipv4Repr { payload_len: 65515, ..Header::parse(&header()).unwrap().repr() };
        assert_eq!(repr.emit(&mut [0; 20]), Ok(20));
        let longer = Ipv4Repr { payload_len: 65516, ..repr };
        assert_eq!(longer.emit(&mut [0; 20]), Err(Error::PacketTooLong));
    }
}
