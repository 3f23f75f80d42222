//! ICMP in own-address mode (RFC 792, RFC 1122, 3.2.2).

use millstream_wire::checksum::Sum;
use millstream_wire::icmp::{HEADER_LEN, Message as Says, Packet as Icmp, unreachable};

use super::Stack;
use super::event::Event;
use super::message::Message;
use super::receive::{Inbound, Packet};

impl Stack {
    pub(super) fn receive_icmp(&mut self, packet: &Packet<'_>) -> Inbound {
        if packet.end - packet.at < HEADER_LEN {
            return self.count(|c| &mut c.truncated);
        }
        let first = packet.parts.first();
        let bytes = first.get(packet.at..packet.end.min(first.len())).unwrap_or_default();
        let Ok(icmp) = Icmp::parse(bytes) else { return self.count(|c| &mut c.truncated) };
        let sum = packet.parts.range(packet.at, packet.end).fold(Sum::new(), Sum::bytes);
        if !sum.is_whole() {
            return self.count(|c| &mut c.bad_icmp_checksum);
        }
        // Requests to everybody need no answer (RFC 1122, 3.2.2.6).
        match icmp.message() {
            Says::EchoRequest { .. } if !packet.broadcast => {
                self.counters.echo_requests += 1;
                Inbound::Answer(Message::echo_reply(packet))
            }
            _ if icmp.is_error() => self.receive_error(&icmp),
            _ => self.count(|c| &mut c.other_protocol),
        }
    }

    /// An error is believed if it quotes a datagram of ours, from a port that is registered.
    fn receive_error(&mut self, icmp: &Icmp<'_>) -> Inbound {
        let Some(failed) = icmp.failed_datagram() else {
            return self.count(|c| &mut c.other_protocol);
        };
        let (from, to) = (failed.from.port(), failed.to);
        if !self.is_ours(*failed.from.ip()) || !self.ports.has(from) {
            return self.count(|c| &mut c.not_ours);
        }
        match icmp.message() {
            Says::Unreachable { code: unreachable::PORT, .. } => {
                self.events.push(Event::PortUnreachable { from, to });
            }
            Says::Unreachable { code: unreachable::FRAGMENTATION_NEEDED, mtu } => {
                self.events.push(Event::TooLong { from, to, mtu });
            }
            _ => {}
        }
        self.count(|c| &mut c.rx_icmp_errors)
    }
}
