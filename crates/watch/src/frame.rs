//! From the bytes of a captured frame to its datagram.

use std::net::SocketAddrV4;

use millstream_wire::ethernet::{Frame, ether_type};
use millstream_wire::{ipv4, udp};

/// What a captured frame begins with, by its `LINKTYPE_` number
/// (<https://www.tcpdump.org/linktypes.html>).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkType {
    /// 1: an Ethernet header.
    Ethernet,
    /// 101: an IP header.
    Raw,
    /// 113: the header of Linux for all interfaces.
    LinuxCooked,
    /// 276: its second version.
    LinuxCooked2,
}

impl LinkType {
    /// Returns the type of this number; `None` for one that is not read.
    #[must_use]
    pub fn of(number: u16) -> Option<Self> {
        Some(match number {
            1 => Self::Ethernet,
            101 => Self::Raw,
            113 => Self::LinuxCooked,
            276 => Self::LinuxCooked2,
            _ => return None,
        })
    }

    /// Returns the number of the interface, if such a header has it.
    #[must_use]
    pub fn interface(self, bytes: &[u8]) -> Option<u32> {
        let number = bytes.get(4..8).filter(|_| self == Self::LinuxCooked2)?;
        Some(u32::from_be_bytes(*number.first_chunk()?))
    }

    /// Returns the packet inside, if it is IPv4.
    fn ipv4(self, bytes: &[u8]) -> Option<&[u8]> {
        let cooked = |protocol: usize, header: usize| {
            let kind = u16::from_be_bytes(*bytes.get(protocol..)?.first_chunk()?);
            (kind == ether_type::IPV4).then(|| bytes.get(header..))?
        };
        match self {
            Self::Ethernet => {
                let frame = Frame::parse(bytes).ok()?;
                (frame.ether_type() == ether_type::IPV4).then(|| frame.payload())
            }
            Self::Raw => Some(bytes),
            Self::LinuxCooked => cooked(14, 16),
            Self::LinuxCooked2 => cooked(0, 20),
        }
    }
}

/// A captured frame.
#[derive(Debug, Clone, Copy)]
pub struct Captured<'a> {
    /// When it was captured, nanoseconds; `None` if that is not known.
    pub at_ns: Option<u64>,
    /// The number of the interface that it passed; 0 where that is not known.
    pub interface: u32,
    /// This host sent it; `None` where that is not known.
    pub is_outgoing: Option<bool>,
    /// What it begins with.
    pub link: LinkType,
    /// Its bytes, or the first of them.
    pub bytes: &'a [u8],
}

/// A datagram, perhaps cut off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Datagram<'a> {
    pub source: SocketAddrV4,
    pub destination: SocketAddrV4,
    /// Its data, as far as captured.
    pub payload: &'a [u8],
    /// Bytes of its data.
    pub length: usize,
}

/// Why a frame has no datagram to follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoDatagram {
    /// It is no UDP over IPv4.
    Other,
    /// It is a later part of a datagram.
    Fragment,
    /// It is cut off too early, or its lengths are impossible.
    Short,
}

impl<'a> Captured<'a> {
    pub(crate) fn datagram(&self) -> Result<Datagram<'a>, NoDatagram> {
        let packet = self.link.ipv4(self.bytes).ok_or(NoDatagram::Other)?;
        let ip = ipv4::Header::parse(packet).map_err(|_| NoDatagram::Other)?;
        if ip.protocol() != ipv4::protocol::UDP {
            return Err(NoDatagram::Other);
        }
        if !ip.is_first() {
            return Err(NoDatagram::Fragment);
        }
        // Behind the packet may be padding.
        let packet = &packet[..packet.len().min(ip.total_len())];
        let inside = packet.get(ip.header_len()..).ok_or(NoDatagram::Short)?;
        let udp = udp::Header::parse(inside).map_err(|_| NoDatagram::Short)?;
        Ok(Datagram {
            source: SocketAddrV4::new(ip.source(), udp.source_port()),
            destination: SocketAddrV4::new(ip.destination(), udp.destination_port()),
            payload: &inside[udp::HEADER_LEN..],
            length: udp.len() - udp::HEADER_LEN,
        })
    }
}
