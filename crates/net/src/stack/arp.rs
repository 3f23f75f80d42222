//! ARP in own-address mode (RFC 826, RFC 5227).

use std::net::Ipv4Addr;

use millstream_wire::Error;
use millstream_wire::arp::{ArpRepr, Op};
use millstream_wire::ethernet::Mac;

use super::claim::Conflict;
use super::due_frame::DueFrame;
use super::neighbours::ArpSource;
use super::receive::Inbound;
use super::routes::NextHop;
use super::{AddressState, Stack};

impl Stack {
    pub(super) fn receive_arp(&mut self, bytes: &[u8], now_ns: u64) -> Inbound {
        if !self.config.own_addresses {
            return self.count(|c| &mut c.not_ours);
        }
        let arp = match ArpRepr::parse(bytes) {
            Ok(arp) => arp,
            Err(Error::Truncated) => return self.count(|c| &mut c.truncated),
            Err(_) => return self.count(|c| &mut c.bad_arp),
        };
        // Our own packet, which some switch sent back.
        if arp.sender_mac == self.config.mac {
            return self.count(|c| &mut c.not_ours);
        }
        if !arp.sender_mac.is_station() {
            return self.count(|c| &mut c.bad_arp);
        }
        self.counters.rx_arp += 1;
        let mac = arp.sender_mac;
        match self.claims.heard(&arp, now_ns) {
            Conflict::None => {}
            Conflict::Lost => {
                self.counters.addresses_lost += 1;
                return self.count(|c| &mut c.arp_conflicts);
            }
            Conflict::Met => return self.count(|c| &mut c.arp_conflicts),
        }
        let for_us = self.is_ours(arp.target);
        if !arp.is_probe() {
            if !self.is_neighbour(arp.sender) {
                return self.count(|c| &mut c.bad_arp);
            }
            let how = match (for_us, arp.op) {
                (true, Op::Reply) => self.heard_answer(arp.sender),
                (true, Op::Request) => ArpSource::Asked,
                (false, _) => ArpSource::Spoke,
            };
            let learnt = self.neighbours.heard(arp.sender, mac, how, now_ns);
            self.note(learnt);
        }
        if !(for_us && arp.op == Op::Request) {
            return Inbound::Done;
        }
        Inbound::Answer(DueFrame::arp(
            mac,
            ArpRepr {
                op: Op::Reply,
                sender_mac: self.config.mac,
                sender: arp.target,
                target_mac: mac,
                target: arp.sender,
            },
        ))
    }

    /// Classifies the sender of a reply: as an answer if it was requested, otherwise as
    /// unsolicited.
    fn heard_answer(&self, address: Ipv4Addr) -> ArpSource {
        if self.neighbours.is_asked(address) { ArpSource::Answer } else { ArpSource::Spoke }
    }

    /// Whether an address can be that of another station on the wire.
    fn is_neighbour(&self, address: Ipv4Addr) -> bool {
        self.config
            .addresses
            .iter()
            .any(|own| own.contains(address) && own.address != address && !own.is_reserved(address))
    }

    /// Creates a request for a neighbour, or about an address of ours.
    pub(super) fn ask(&self, to: Mac, sender: Ipv4Addr, target: Ipv4Addr) -> DueFrame {
        let (op, sender_mac, target_mac) = (Op::Request, self.config.mac, Mac::default());
        DueFrame::arp(to, ArpRepr { op, sender_mac, sender, target_mac, target })
    }

    /// Returns our address on the network of a neighbour.
    pub(super) fn source_for(&self, neighbour: Ipv4Addr) -> Option<Ipv4Addr> {
        match self.routes.on_wire(neighbour) {
            Some(NextHop::Station { source, .. })
                if self.claims.state(source) == AddressState::Ours =>
            {
                Some(source)
            }
            _ => None,
        }
    }
}
