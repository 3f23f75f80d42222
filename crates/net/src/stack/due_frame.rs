//! The stack's own frames, stored in short form until there is a buffer to write them to.

use std::net::Ipv4Addr;

use millstream_wire::arp::ArpRepr;
use millstream_wire::ethernet::{EthernetRepr, Mac, ether_type};
use millstream_wire::icmp::{self, unreachable};
use millstream_wire::ipv4::{self, Ipv4Repr, protocol};
use millstream_wire::{Error, Result};

use super::Stack;
use super::parts::FrameParts;
use super::receive::ReceivedPacket;
use super::template::HOP_LIMIT;

/// A frame to send. [`Stack::write`] writes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DueFrame {
    to: Mac,
    kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Arp(ArpRepr),
    /// The ICMP message at `at` to `end` of the request, sent back.
    EchoReply(Reply),
    /// A quotation of the packet at `at` to `end` of the request.
    PortUnreachable(Reply),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Reply {
    from: Ipv4Addr,
    to: Ipv4Addr,
    at: usize,
    end: usize,
}

/// Packets with an ICMP error have at most this many bytes (RFC 1812, 4.3.2.3).
const ERROR_LEN_MAX: usize = 576;

impl DueFrame {
    pub(super) fn arp(to: Mac, repr: ArpRepr) -> DueFrame {
        DueFrame { to, kind: Kind::Arp(repr) }
    }

    pub(super) fn echo_reply(packet: &ReceivedPacket<'_>) -> DueFrame {
        let kind = Kind::EchoReply(Reply::to(packet, packet.at, packet.end));
        DueFrame { to: packet.source_mac, kind }
    }

    pub(super) fn port_unreachable(packet: &ReceivedPacket<'_>) -> DueFrame {
        let quoted_max = ERROR_LEN_MAX - ipv4::HEADER_LEN - icmp::HEADER_LEN;
        let end = packet.end.min(packet.ip_at + quoted_max);
        let kind = Kind::PortUnreachable(Reply::to(packet, packet.ip_at, end));
        DueFrame { to: packet.source_mac, kind }
    }
}

impl Reply {
    fn to(packet: &ReceivedPacket<'_>, at: usize, end: usize) -> Reply {
        Reply { from: packet.destination, to: packet.source, at, end }
    }
}

impl Stack {
    /// Writes a frame and returns its length, at most the MTU and 18 bytes.
    ///
    /// `request` has the parts of the frame that it answers, and is empty for a frame from
    /// [`Stack::poll`]. Returns 0, and counts it, if the frame does not fit.
    pub fn write(&mut self, frame: &DueFrame, request: &[&[u8]], into: &mut [u8]) -> usize {
        match self.try_write(frame, FrameParts(request), into) {
            Ok(len) => {
                match frame.kind {
                    Kind::Arp(_) => self.counters.tx_arp += 1,
                    Kind::EchoReply(_) => {}
                    Kind::PortUnreachable(_) => self.counters.tx_unreachable += 1,
                }
                len
            }
            Err(_) => {
                self.counters.too_long_to_answer += 1;
                0
            }
        }
    }

    fn try_write(
        &mut self,
        frame: &DueFrame,
        parts: FrameParts<'_>,
        into: &mut [u8],
    ) -> Result<usize> {
        let is_arp = matches!(frame.kind, Kind::Arp(_));
        let ethernet = EthernetRepr {
            destination: frame.to,
            source: self.config.mac,
            tag: self.config.vlan,
            ether_type: if is_arp { ether_type::ARP } else { ether_type::IPV4 },
        };
        let at = ethernet.emit(into)?;
        let into = &mut into[at..];
        let len = match frame.kind {
            Kind::Arp(repr) => repr.emit(into)?,
            Kind::EchoReply(reply) => self.write_icmp(reply, into, |into| {
                icmp::emit_echo_reply(parts.range(reply.at, reply.end), into)
            })?,
            Kind::PortUnreachable(reply) => {
                let mut quote = [0; ERROR_LEN_MAX];
                let mut len = 0;
                for piece in parts.range(reply.at, reply.end) {
                    quote[len..len + piece.len()].copy_from_slice(piece);
                    len += piece.len();
                }
                self.write_icmp(reply, into, |into| {
                    icmp::emit_unreachable(unreachable::PORT, &quote[..len], into)
                })?
            }
        };
        Ok(at + len)
    }

    fn write_icmp(
        &mut self,
        reply: Reply,
        into: &mut [u8],
        emit: impl FnOnce(&mut [u8]) -> Result<usize>,
    ) -> Result<usize> {
        let payload = into.get_mut(ipv4::HEADER_LEN..).ok_or(Error::BufferTooSmall)?;
        let payload_len = emit(payload)?;
        if ipv4::HEADER_LEN + payload_len > self.config.mtu {
            return Err(Error::PacketTooLong);
        }
        let header = Ipv4Repr {
            source: reply.from,
            destination: reply.to,
            protocol: protocol::ICMP,
            hop_limit: HOP_LIMIT,
            traffic_class: 0,
            id: self.take_id(),
            payload_len,
        };
        Ok(header.emit(into)? + payload_len)
    }

    /// Returns the next identification. It has no meaning in a packet that is not fragmented (RFC
    /// 6864); it is incremented so that captures are readable.
    pub(super) fn take_id(&mut self) -> u16 {
        let id = self.next_id;
        self.next_id = id.wrapping_add(1);
        id
    }
}
