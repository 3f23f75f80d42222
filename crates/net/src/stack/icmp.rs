//! ICMP in own-address mode (RFC 792, RFC 1122, 3.2.2).

use millstream_wire::checksum::Sum;
use millstream_wire::icmp::{HEADER_LEN, Message as Says, Packet as Icmp, unreachable};

use super::Stack;
use super::due_frame::DueFrame;
use super::receive::{Inbound, ReceivedPacket};

impl Stack {
    pub(super) fn receive_icmp(&mut self, packet: &ReceivedPacket<'_>) -> Inbound {
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
        // Broadcast requests need no answer (RFC 1122, 3.2.2.6).
        match icmp.message() {
            Says::EchoRequest { .. } if !packet.broadcast => {
                self.counters.echo_requests += 1;
                Inbound::Answer(DueFrame::echo_reply(packet))
            }
            _ if icmp.is_error() => self.receive_error(&icmp),
            _ => self.count(|c| &mut c.other_protocol),
        }
    }

    /// Counts an error about a port of ours. None of them fails a send: a forger only needs to
    /// guess two ports (RFC 5927, 5).
    ///
    /// "Fragmentation needed" has an effect if it can be true (RFC 5927, 7.2): it quotes a packet
    /// no longer than what we sent that way, and longer than the size that it says would pass.
    /// Routers may then fragment what follows (RFC 1191, 3), so that a lie costs nothing.
    fn receive_error(&mut self, icmp: &Icmp<'_>) -> Inbound {
        let Some(failed) = icmp.failed_datagram() else {
            return self.count(|c| &mut c.other_protocol);
        };
        if !self.is_ours(*failed.from.ip()) || !self.has_port(failed.from.port()) {
            return self.count(|c| &mut c.not_ours);
        }
        if let Says::Unreachable { code: unreachable::FRAGMENTATION_NEEDED, mtu } = icmp.message() {
            let path = self.paths.used(failed.from, failed.to);
            // Routers older than RFC 1191 report 0.
            let passes = usize::from(mtu);
            match path.filter(|path| (passes + 1..=path.longest).contains(&failed.packet_len)) {
                Some(path) => {
                    path.template.let_be_cut();
                    self.counters.paths_narrowed += 1;
                }
                None => self.counters.icmp_doubted += 1,
            }
        }
        self.count(|c| &mut c.rx_icmp_errors)
    }
}
