//! User datagrams (RFC 768).

use core::net::Ipv4Addr;

use crate::bits::be16;
use crate::checksum::Sum;
use crate::{Error, Result};

/// Bytes of the header.
pub const HEADER_LEN: usize = 8;

/// A header that is complete and whose length covers it. The data behind it may be incomplete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header<'a> {
    bytes: &'a [u8],
}

impl<'a> Header<'a> {
    /// Checks the header at the start of `bytes`, but not its checksum.
    ///
    /// # Errors
    /// [`Error::Truncated`], [`Error::LengthTooSmall`].
    #[inline]
    pub fn parse(bytes: &'a [u8]) -> Result<Header<'a>> {
        let bytes = bytes.get(..HEADER_LEN).ok_or(Error::Truncated)?;
        if usize::from(be16(bytes, 4)) < HEADER_LEN {
            return Err(Error::LengthTooSmall);
        }
        Ok(Header { bytes })
    }

    /// Returns the source port; 0 if no answer is wanted.
    #[must_use]
    #[inline]
    pub fn source_port(&self) -> u16 {
        be16(self.bytes, 0)
    }

    /// Returns the destination port.
    #[must_use]
    #[inline]
    pub fn destination_port(&self) -> u16 {
        be16(self.bytes, 2)
    }

    /// Returns the bytes of header and data.
    #[must_use]
    #[inline]
    pub fn len(&self) -> usize {
        usize::from(be16(self.bytes, 4))
    }

    /// Returns whether the data is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == HEADER_LEN
    }

    /// Returns the checksum as sent; 0 for a datagram without one.
    #[must_use]
    #[inline]
    pub fn checksum(&self) -> u16 {
        be16(self.bytes, 6)
    }

    /// Returns the data from the bytes that the header was parsed from.
    ///
    /// # Errors
    /// [`Error::Truncated`] if they end before the datagram does.
    pub fn payload<'b>(&self, datagram: &'b [u8]) -> Result<&'b [u8]> {
        datagram.get(HEADER_LEN..self.len()).ok_or(Error::Truncated)
    }

    /// Returns whether checksum and bytes agree; `datagram` is header and data, in pieces. A
    /// datagram without a checksum is accepted.
    #[must_use]
    pub fn is_whole<'b>(
        &self,
        from: Ipv4Addr,
        to: Ipv4Addr,
        datagram: impl IntoIterator<Item = &'b [u8]>,
    ) -> bool {
        let sum = Sum::new().udp_pseudo_header(from, to, self.len() as u16);
        self.checksum() == 0 || datagram.into_iter().fold(sum, Sum::bytes).is_whole()
    }

    /// Returns whether the checksum covers only the pseudo-header: the sender left the rest to
    /// hardware that the datagram never reached. Such a sender is on the same machine.
    #[must_use]
    pub fn is_partial(&self, from: Ipv4Addr, to: Ipv4Addr) -> bool {
        self.checksum() == Sum::new().udp_pseudo_header(from, to, self.len() as u16).folded()
    }
}

/// The header of a datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UdpRepr {
    /// The source port.
    pub source_port: u16,
    /// The destination port.
    pub destination_port: u16,
}

impl UdpRepr {
    /// Writes the header before `payload`, with a checksum.
    ///
    /// # Errors
    /// [`Error::BufferTooSmall`], [`Error::PacketTooLong`].
    pub fn emit(
        &self,
        from: Ipv4Addr,
        to: Ipv4Addr,
        payload: &[u8],
        buf: &mut [u8],
    ) -> Result<usize> {
        let buf = buf.get_mut(..HEADER_LEN).ok_or(Error::BufferTooSmall)?;
        let Ok(len) = u16::try_from(payload.len() + HEADER_LEN) else {
            return Err(Error::PacketTooLong);
        };
        buf[..2].copy_from_slice(&self.source_port.to_be_bytes());
        buf[2..4].copy_from_slice(&self.destination_port.to_be_bytes());
        buf[4..6].copy_from_slice(&len.to_be_bytes());
        buf[6..8].fill(0);
        let sum = Sum::new().udp_pseudo_header(from, to, len).bytes(buf).bytes(payload);
        buf[6..8].copy_from_slice(&sum.udp_checksum().to_be_bytes());
        Ok(HEADER_LEN)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FROM: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
    const TO: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
    const REPR: UdpRepr = UdpRepr { source_port: 1000, destination_port: 49153 };

    fn datagram(payload: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0xAA; HEADER_LEN];
        REPR.emit(FROM, TO, payload, &mut bytes).unwrap();
        bytes.extend(payload);
        bytes
    }

    #[test]
    fn every_flipped_bit_shows_in_the_checksum() {
        let good = datagram(b"odd");
        for bit in 0..good.len() * 8 {
            let mut bytes = good.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            let header = Header::parse(&bytes);
            assert!(!header.is_ok_and(|header| header.is_whole(FROM, TO, [&bytes[..]])), "{bit}");
        }
        let header = Header::parse(&good).unwrap();
        assert!(header.is_whole(FROM, TO, [&good[..3], &good[3..]]));
        assert!(!header.is_whole(FROM, FROM, [&good[..]]));
        assert_eq!(header.payload(&good), Ok(&b"odd"[..]));
    }

    #[test]
    fn a_datagram_without_a_checksum_is_whole() {
        let mut bytes = datagram(b"data");
        bytes[6..8].fill(0);
        assert!(Header::parse(&bytes).unwrap().is_whole(FROM, TO, [&bytes[..]]));
    }

    #[test]
    fn a_partial_checksum_is_the_sum_of_the_pseudo_header() {
        let mut bytes = datagram(b"data");
        assert!(!Header::parse(&bytes).unwrap().is_partial(FROM, TO));
        let sum = Sum::new().udp_pseudo_header(FROM, TO, 12).folded();
        bytes[6..8].copy_from_slice(&sum.to_be_bytes());
        let header = Header::parse(&bytes).unwrap();
        assert!(header.is_partial(FROM, TO) && !header.is_whole(FROM, TO, [&bytes[..]]));
    }

    #[test]
    fn a_length_that_does_not_cover_the_header_is_refused() {
        let mut bytes = datagram(b"");
        assert!(Header::parse(&bytes).unwrap().is_empty());
        bytes[5] = 7;
        assert_eq!(Header::parse(&bytes), Err(Error::LengthTooSmall));
        assert_eq!(Header::parse(&bytes[..7]), Err(Error::Truncated));
    }
}
