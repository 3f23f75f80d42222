//! The classification of received frames.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::ops::Range;

use millstream_wire::ethernet::{Frame, Mac, ether_type, vlan_id};
use millstream_wire::ipv4::{Header, protocol};
use millstream_wire::{Error, udp};

use super::config::{ChecksumPolicy, is_station};
use super::due_frame::DueFrame;
use super::parts::FrameParts;
use super::{AddressState, Stack};

/// A frame delivered by a link.
#[derive(Debug, Clone, Copy)]
pub struct ReceivedFrame<'a> {
    /// Its bytes, from the Ethernet header on; mostly one part. The headers are in the first.
    pub parts: &'a [&'a [u8]],
    /// 802.1Q tag control information that the kernel took out of it.
    pub vlan: Option<u16>,
    /// The link has verified its UDP checksum. The header's checksum is ten words, and always
    /// checked.
    pub checksum_trusted: bool,
}

/// The action for a received frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Inbound {
    /// It is a datagram for a registered port.
    Udp(ReceivedDatagram),
    /// An answer is due: [`Stack::write`] writes it from this frame, which must still exist then.
    Answer(DueFrame),
    /// No action: it is consumed, or dropped and counted.
    Done,
}

/// A received datagram.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReceivedDatagram {
    /// The range of its payload in the frame, all parts taken together.
    pub payload: Range<usize>,
    /// The sender.
    pub source: SocketAddrV4,
    /// The destination: an address of ours or a broadcast address, and a registered port.
    pub destination: SocketAddrV4,
}

/// The properties of an IPv4 packet that is for us.
#[derive(Debug, Clone, Copy)]
pub(super) struct ReceivedPacket<'a> {
    pub(super) parts: FrameParts<'a>,
    /// The start of its header in the frame.
    pub(super) ip_at: usize,
    /// The start and end of its payload.
    pub(super) at: usize,
    pub(super) end: usize,
    pub(super) source_mac: Mac,
    pub(super) source: Ipv4Addr,
    pub(super) destination: Ipv4Addr,
    /// For every station on the wire.
    pub(super) broadcast: bool,
    trusted: bool,
}

impl Stack {
    /// Classifies a received frame.
    pub fn receive(&mut self, frame: ReceivedFrame<'_>, now_ns: u64) -> Inbound {
        let parts = FrameParts(frame.parts);
        let ethernet = match Frame::parse(parts.first()) {
            Ok(ethernet) => ethernet,
            Err(Error::NoEtherType) => return self.count(|c| &mut c.other_ether_type),
            Err(_) => return self.count(|c| &mut c.truncated),
        };
        if !self.is_our_vlan(frame.vlan, ethernet.tag()) {
            return self.count(|c| &mut c.other_vlan);
        }
        let to = ethernet.destination();
        if to != self.config.mac && to != Mac::BROADCAST {
            return self.count(|c| &mut c.not_ours);
        }
        match ethernet.ether_type() {
            ether_type::IPV4 => self.receive_ipv4(&frame, &ethernet, now_ns),
            ether_type::ARP => self.receive_arp(ethernet.payload(), now_ns),
            _ => self.count(|c| &mut c.other_ether_type),
        }
    }

    /// Whether a frame is in our VLAN. A tag with identifier 0 only states a priority: such a frame
    /// is in no VLAN.
    fn is_our_vlan(&self, outside: Option<u16>, inside: Option<u16>) -> bool {
        let ids = (outside.map_or(0, vlan_id), inside.map_or(0, vlan_id));
        let ours = self.config.vlan.unwrap_or(0);
        ids == (ours, 0) || ids == (0, ours)
    }

    fn receive_ipv4(
        &mut self,
        frame: &ReceivedFrame<'_>,
        ethernet: &Frame<'_>,
        now_ns: u64,
    ) -> Inbound {
        let header = match Header::parse(ethernet.payload()) {
            Ok(header) => header,
            Err(Error::Truncated) => return self.count(|c| &mut c.truncated),
            Err(_) => return self.count(|c| &mut c.bad_header),
        };
        if !header.is_whole() {
            return self.count(|c| &mut c.bad_ip_checksum);
        }
        let ip_at = ethernet.header_len();
        let packet = ReceivedPacket {
            parts: FrameParts(frame.parts),
            ip_at,
            at: ip_at + header.header_len(),
            end: ip_at + header.total_len(),
            source_mac: ethernet.source(),
            source: header.source(),
            destination: header.destination(),
            broadcast: ethernet.destination() == Mac::BROADCAST,
            trusted: frame.checksum_trusted,
        };
        if packet.parts.len() < packet.end {
            return self.count(|c| &mut c.truncated);
        }
        if !self.is_for_us(&packet) {
            return self.count(|c| &mut c.not_ours);
        }
        if !self.is_possible_source(packet.source) {
            return self.count(|c| &mut c.bad_source);
        }
        if header.is_fragment() {
            return self.count(|c| &mut c.fragments);
        }
        match header.protocol() {
            protocol::UDP => self.receive_udp(&packet, now_ns),
            protocol::ICMP if self.config.own_addresses => self.receive_icmp(&packet),
            _ => self.count(|c| &mut c.other_protocol),
        }
    }

    /// Whether a packet is for us. A broadcast packet must have come in a broadcast frame, and one
    /// to us in a frame to us alone (RFC 1122, 3.3.6).
    fn is_for_us(&self, packet: &ReceivedPacket<'_>) -> bool {
        let to = packet.destination;
        if packet.broadcast {
            let mut networks = self.config.addresses.iter();
            return to.is_broadcast() || networks.any(|own| own.broadcast() == Some(to));
        }
        self.config.addresses.iter().any(|own| own.address == to)
            && self.claims.state(to) == AddressState::Ours
    }

    /// Whether a source address is possible: not one that no station has, nor our own (RFC 1122,
    /// 3.2.1.3).
    fn is_possible_source(&self, source: Ipv4Addr) -> bool {
        let is_bad = |own: &super::Subnet| own.address == source || own.is_reserved(source);
        is_station(source) && !self.config.addresses.iter().any(is_bad)
    }

    fn receive_udp(&mut self, packet: &ReceivedPacket<'_>, now_ns: u64) -> Inbound {
        let bytes = packet.parts.first().get(packet.at..).unwrap_or_default();
        let header = match udp::Header::parse(bytes) {
            Ok(header) => header,
            Err(Error::Truncated) => return self.count(|c| &mut c.truncated),
            Err(_) => return self.count(|c| &mut c.bad_header),
        };
        let end = packet.at + header.len();
        // A packet too short for the header may be followed by padding, which would look like one.
        if end > packet.end {
            return self.count(|c| &mut c.truncated);
        }
        if !self.has_good_checksum(packet, &header, end) {
            return self.count(|c| &mut c.bad_udp_checksum);
        }
        let port = header.destination_port();
        if !self.has_port(port) {
            return self.refuse(packet, now_ns);
        }
        let payload = packet.at + udp::HEADER_LEN..end;
        self.counters.rx_datagrams += 1;
        self.counters.rx_bytes += payload.len() as u64;
        Inbound::Udp(ReceivedDatagram {
            payload,
            source: SocketAddrV4::new(packet.source, header.source_port()),
            destination: SocketAddrV4::new(packet.destination, port),
        })
    }

    fn has_good_checksum(
        &mut self,
        packet: &ReceivedPacket<'_>,
        header: &udp::Header<'_>,
        end: usize,
    ) -> bool {
        let policy = self.config.checksum;
        if packet.trusted || policy == ChecksumPolicy::Ignore || header.checksum() == 0 {
            return true;
        }
        let (from, to) = (packet.source, packet.destination);
        if policy == ChecksumPolicy::AcceptPartial && header.is_partial(from, to) {
            self.counters.partial_checksums += 1;
            return true;
        }
        header.is_whole(from, to, packet.parts.range(packet.at, end))
    }

    /// Refuses a datagram for a port that is not registered here. With shared addresses only the
    /// kernel knows the registered ports.
    fn refuse(&mut self, packet: &ReceivedPacket<'_>, now_ns: u64) -> Inbound {
        self.counters.no_port += 1;
        if !self.config.own_addresses || packet.broadcast {
            return Inbound::Done;
        }
        if !self.errors.take(now_ns) {
            return self.count(|c| &mut c.rate_limited);
        }
        Inbound::Answer(DueFrame::port_unreachable(packet))
    }
}
