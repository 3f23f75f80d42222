//! Ethernet frames, with or without one VLAN tag (RFC 894, IEEE 802.3 clause 3, IEEE 802.1Q).

use crate::bits::{be16, mac};
use crate::{Error, Result};

/// An Ethernet address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, PartialOrd, Ord)]
pub struct Mac(pub [u8; 6]);

impl Mac {
    /// The address of all stations.
    pub const BROADCAST: Mac = Mac([0xFF; 6]);

    /// Returns whether it is the address of a group of stations, such as the broadcast address.
    #[must_use]
    #[inline]
    pub const fn is_group(self) -> bool {
        self.0[0] & 1 != 0
    }

    /// Returns whether it can be the address of one station: neither a group nor all zero.
    #[must_use]
    #[inline]
    pub const fn is_station(self) -> bool {
        !self.is_group() && u64_of(self.0) != 0
    }
}

const fn u64_of(bytes: [u8; 6]) -> u64 {
    let [a, b, c, d, e, f] = bytes;
    u64::from_be_bytes([0, 0, a, b, c, d, e, f])
}

impl From<[u8; 6]> for Mac {
    fn from(bytes: [u8; 6]) -> Mac {
        Mac(bytes)
    }
}

impl core::fmt::Display for Mac {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

/// Ethernet types of payloads.
pub mod ether_type {
    /// An IPv4 packet.
    pub const IPV4: u16 = 0x0800;
    /// An ARP packet.
    pub const ARP: u16 = 0x0806;
    /// An 802.1Q tag, and another type behind it.
    pub const VLAN: u16 = 0x8100;
}

/// Bytes of the header without a tag.
pub const HEADER_LEN: usize = 14;

/// Bytes that a VLAN tag adds.
pub const TAG_LEN: usize = 4;

/// Types below this are the length of an 802.3 frame.
const TYPE_MIN: u16 = 0x600;

/// Returns the VLAN identifier in a tag's control information; 0 in a tag with only a priority.
#[must_use]
#[inline]
pub const fn vlan_id(control: u16) -> u16 {
    control & 0xFFF
}

/// A frame whose header is complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame<'a> {
    bytes: &'a [u8],
    tag: Option<u16>,
    kind: u16,
}

impl<'a> Frame<'a> {
    /// Checks the header of a frame without its check sequence.
    ///
    /// # Errors
    /// [`Error::Truncated`], [`Error::NoEtherType`].
    #[inline]
    pub fn parse(bytes: &'a [u8]) -> Result<Frame<'a>> {
        if bytes.len() < HEADER_LEN {
            return Err(Error::Truncated);
        }
        let (mut tag, mut kind) = (None, be16(bytes, 12));
        if kind == ether_type::VLAN {
            if bytes.len() < HEADER_LEN + TAG_LEN {
                return Err(Error::Truncated);
            }
            (tag, kind) = (Some(be16(bytes, 14)), be16(bytes, 16));
        }
        if kind < TYPE_MIN {
            return Err(Error::NoEtherType);
        }
        Ok(Frame { bytes, tag, kind })
    }

    /// Returns the destination address.
    #[must_use]
    #[inline]
    pub fn destination(&self) -> Mac {
        mac(self.bytes, 0)
    }

    /// Returns the claimed source address.
    #[must_use]
    #[inline]
    pub fn source(&self) -> Mac {
        mac(self.bytes, 6)
    }

    /// Control information of its (outer) VLAN tag, if it has one.
    #[must_use]
    #[inline]
    pub fn tag(&self) -> Option<u16> {
        self.tag
    }

    /// Returns the type of the payload, behind a tag: one of [`ether_type`] or another.
    #[must_use]
    #[inline]
    pub fn ether_type(&self) -> u16 {
        self.kind
    }

    /// Returns the bytes of its header, with the tag.
    #[must_use]
    #[inline]
    pub fn header_len(&self) -> usize {
        HEADER_LEN + if self.tag.is_some() { TAG_LEN } else { 0 }
    }

    /// Returns the bytes behind the header; short packets are padded to 46 bytes.
    #[must_use]
    #[inline]
    pub fn payload(&self) -> &'a [u8] {
        &self.bytes[self.header_len()..]
    }

    /// Returns the header's fields.
    #[must_use]
    pub fn repr(&self) -> EthernetRepr {
        EthernetRepr {
            destination: self.destination(),
            source: self.source(),
            tag: self.tag,
            ether_type: self.kind,
        }
    }
}

/// The header of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct EthernetRepr {
    /// The destination address.
    pub destination: Mac,
    /// The source address.
    pub source: Mac,
    /// Control information of a VLAN tag.
    pub tag: Option<u16>,
    /// The type of the payload.
    pub ether_type: u16,
}

impl EthernetRepr {
    /// Returns the bytes that [`EthernetRepr::emit`] writes.
    #[must_use]
    pub const fn header_len(&self) -> usize {
        HEADER_LEN + if self.tag.is_some() { TAG_LEN } else { 0 }
    }

    /// Writes the header and returns its length.
    ///
    /// # Errors
    /// [`Error::BufferTooSmall`], and [`Error::FieldOverflow`] for a type that means a length or a
    /// further tag.
    pub fn emit(&self, buf: &mut [u8]) -> Result<usize> {
        if self.ether_type < TYPE_MIN || (self.ether_type == ether_type::VLAN && self.tag.is_none())
        {
            return Err(Error::FieldOverflow);
        }
        let len = self.header_len();
        let buf = buf.get_mut(..len).ok_or(Error::BufferTooSmall)?;
        buf[..6].copy_from_slice(&self.destination.0);
        buf[6..12].copy_from_slice(&self.source.0);
        if let Some(tag) = self.tag {
            buf[12..14].copy_from_slice(&ether_type::VLAN.to_be_bytes());
            buf[14..16].copy_from_slice(&tag.to_be_bytes());
        }
        buf[len - 2..].copy_from_slice(&self.ether_type.to_be_bytes());
        Ok(len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: [u8; 14] = [2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0];

    #[test]
    fn a_plain_header_is_fourteen_bytes() {
        let frame = Frame::parse(&HEADER).unwrap();
        assert_eq!(frame.destination().to_string(), "02:00:00:00:00:01");
        assert_eq!((frame.ether_type(), frame.tag(), frame.payload().len()), (0x800, None, 0));
        assert_eq!(Frame::parse(&HEADER[..13]), Err(Error::Truncated));
    }

    #[test]
    fn a_tag_is_taken_out() {
        let mut tagged = HEADER[..12].to_vec();
        tagged.extend([0x81, 0, 0x60, 7, 8, 6, 99]);
        let frame = Frame::parse(&tagged).unwrap();
        assert_eq!((frame.ether_type(), frame.tag().map(vlan_id)), (ether_type::ARP, Some(7)));
        assert_eq!(frame.payload(), [99]);
        assert_eq!(Frame::parse(&tagged[..17]), Err(Error::Truncated));
    }

    #[test]
    fn a_length_is_no_type() {
        let mut frame = HEADER;
        frame[12..].copy_from_slice(&1500u16.to_be_bytes());
        assert_eq!(Frame::parse(&frame), Err(Error::NoEtherType));
    }

    #[test]
    fn groups_and_zero_are_no_stations() {
        assert!(Mac::BROADCAST.is_group() && !Mac::BROADCAST.is_station());
        assert!(Mac([1, 0, 0x5E, 0, 0, 1]).is_group());
        assert!(!Mac::default().is_group() && !Mac::default().is_station());
        assert!(Mac([2, 0, 0, 0, 0, 1]).is_station());
    }
}
