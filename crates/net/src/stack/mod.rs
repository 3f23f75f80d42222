//! An IPv4 host as pure logic: frames in, frames out, time an argument; no I/O and no clock.
//!
//! ```text
//!   frame ─▶ receive ─▶ Udp (where the payload lies) | Answer ─▶ write ─▶ frame | Done (counted)
//!   datagram ─▶ emit (headers before it) ─▶ frame | Pending | why not
//!   clock ─▶ poll ─▶ Write ─▶ write ─▶ frame | Ask (the kernel, for a neighbour)
//! ```
//!
//! Two modes. With **own addresses** the kernel does not know them: ARP, echo and "port
//! unreachable" are answered here, addresses are claimed as RFC 5227 says, neighbours resolved as
//! RFC 826 says. With **shared addresses** the kernel keeps answering; neighbours are asked of it
//! ([`DueAction::Ask`]) and told by [`Stack::learn`].
//!
//! Hosts behave as RFC 1122 says, with one omission: nothing is cut or put together. Outgoing
//! datagrams must fit the MTU, and have "don't fragment" set unless a router says that it would
//! have to cut them; incoming parts are counted.

mod arp;
mod claim;
mod config;
mod counters;
mod emit;
mod icmp;
mod limiter;
mod message;
mod neighbours;
mod parts;
mod ports;
mod receive;
mod routes;
mod template;
#[cfg(test)]
mod tests;

use std::net::Ipv4Addr;

use millstream_wire::ethernet::{HEADER_LEN, Mac, TAG_LEN};
use millstream_wire::{ipv4, udp};

pub use config::{AddressClaim, ChecksumPolicy, Route, StackConfig, StackError, Subnet};
pub use counters::StackCounters;
pub use emit::{EmitError, EmitHop};
pub use message::DueFrame;
pub use receive::{Inbound, ReceivedDatagram, ReceivedFrame};
pub use routes::Unreachable;
pub use template::HeaderTemplate;

use claim::{AddressState, Claims, Say};
use limiter::Limiter;
use neighbours::{ArpSource, ArpUpdate, NeighbourTask, Neighbours};
use ports::Ports;
use routes::Routes;

/// Something that is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DueAction {
    /// A frame to be written by [`Stack::write`] and transmitted.
    Write(DueFrame),
    /// The kernel is to be asked for this neighbour, and [`Stack::learn`] told.
    Ask(Ipv4Addr),
}

/// An IPv4 host on one wire.
#[derive(Debug)]
pub struct Stack {
    config: StackConfig,
    routes: Routes,
    neighbours: Neighbours,
    claims: Claims,
    ports: Ports,
    paths: emit::Paths,
    errors: Limiter,
    counters: StackCounters,
    /// Identification of the next packet.
    next_id: u16,
}

impl Stack {
    /// A host that follows `config`.
    ///
    /// # Errors
    /// [`StackError`], which says what to do.
    pub fn new(config: StackConfig) -> Result<Stack, StackError> {
        config.check()?;
        let claimed = config.addresses.iter().filter(|_| config.own_addresses);
        let claimed = claimed.map(|subnet| subnet.address);
        Ok(Stack {
            routes: Routes::new(&config),
            neighbours: Neighbours::new(config.neighbours_max, !config.own_addresses),
            claims: Claims::new(config.mac, config.claim, claimed, config.seed),
            ports: Ports::new(),
            paths: emit::Paths::new(),
            // RFC 1812, 4.3.2.8: errors are limited, in number and in bursts.
            errors: Limiter::new(100, 20),
            counters: StackCounters::default(),
            next_id: config.seed as u16,
            config,
        })
    }

    /// What the stack was told.
    #[must_use]
    pub fn config(&self) -> &StackConfig {
        &self.config
    }

    /// Bytes of Ethernet, IPv4 and UDP headers before the payload of a transmitted datagram.
    #[must_use]
    pub fn header_len(&self) -> usize {
        self.link_header_len() + ipv4::HEADER_LEN + udp::HEADER_LEN
    }

    fn link_header_len(&self) -> usize {
        HEADER_LEN + if self.config.vlan.is_some() { TAG_LEN } else { 0 }
    }

    /// Longest UDP payload that fits the MTU, bytes.
    #[must_use]
    pub fn payload_len_max(&self) -> usize {
        self.config.mtu - ipv4::HEADER_LEN - udp::HEADER_LEN
    }

    /// Registers a UDP port: its datagrams are handed on. False if it was registered already.
    pub fn open_port(&mut self, port: u16) -> bool {
        self.ports.open(port)
    }

    /// Takes a registration back.
    pub fn close_port(&mut self, port: u16) {
        self.ports.close(port);
    }

    /// Whether a port is registered.
    #[must_use]
    pub fn has_port(&self, port: u16) -> bool {
        self.ports.has(port)
    }

    /// Whether all own addresses are settled: in use, or lost to another station.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        self.claims.is_settled()
    }

    /// Whether an address is ours, and claimed by now.
    #[must_use]
    pub fn is_ours(&self, address: Ipv4Addr) -> bool {
        self.config.addresses.iter().any(|own| own.address == address)
            && self.claims.state(address) == AddressState::Ours
    }

    /// Packets by what became of them.
    #[must_use]
    pub fn counters(&self) -> StackCounters {
        self.counters
    }

    /// Counts a frame that cannot be looked at.
    pub fn note_too_many_parts(&mut self) {
        self.counters.too_many_parts += 1;
    }

    /// Changes whenever a next hop may have changed: what was [`EmitHop::Pending`] may be known
    /// now.
    #[must_use]
    pub fn generation(&self) -> u64 {
        self.neighbours.generation() + self.claims.generation()
    }

    /// When [`Stack::poll`] next has something to do, on the clock that it is given;
    /// `u64::MAX` for never.
    #[must_use]
    pub fn due_ns(&self) -> u64 {
        self.neighbours.due_ns().min(self.claims.due_ns())
    }

    /// The next thing that is due at `now_ns`. Call it until there is nothing more, whenever
    /// [`Stack::due_ns`] has passed; a frame that cannot be sent may be dropped, for requests
    /// are repeated.
    pub fn poll(&mut self, now_ns: u64) -> Option<DueAction> {
        if now_ns < self.due_ns() {
            return None;
        }
        if let Some(say) = self.claims.poll(now_ns) {
            let (sender, target) = match say {
                Say::Probe(address) => (Ipv4Addr::UNSPECIFIED, address),
                Say::Announce(address) => (address, address),
            };
            return Some(DueAction::Write(self.ask(Mac::BROADCAST, sender, target)));
        }
        while let Some(task) = self.neighbours.poll(now_ns) {
            match task {
                NeighbourTask::Ask { address, .. } if !self.config.own_addresses => {
                    return Some(DueAction::Ask(address));
                }
                NeighbourTask::Ask { address, at } => {
                    // No way any more: our address was lost. The entry ends by itself.
                    let Some(source) = self.source_for(address) else { continue };
                    let to = at.unwrap_or(Mac::BROADCAST);
                    return Some(DueAction::Write(self.ask(to, source, address)));
                }
                NeighbourTask::Lost => self.counters.neighbours_lost += 1,
            }
        }
        None
    }

    /// Shared addresses: who has an address, says the kernel.
    pub fn learn(&mut self, address: Ipv4Addr, mac: [u8; 6], now_ns: u64) {
        let mac = Mac(mac);
        if mac.is_station() {
            let learnt = self.neighbours.heard(address, mac, ArpSource::Answer, now_ns);
            self.note(learnt);
        }
    }

    /// Shared addresses: nobody answers for an address, says the kernel.
    pub fn forget(&mut self, address: Ipv4Addr, now_ns: u64) {
        if self.neighbours.failed(address, now_ns) {
            self.counters.neighbours_lost += 1;
        }
    }

    /// Shared addresses: the neighbours that the kernel is being asked for, so that what it says
    /// about others can be left out.
    pub fn wants(&self) -> impl Iterator<Item = Ipv4Addr> {
        self.neighbours.asking()
    }

    fn note(&mut self, learnt: ArpUpdate) {
        match learnt {
            ArpUpdate::Moved => self.counters.neighbours_moved += 1,
            ArpUpdate::Full => self.counters.neighbours_full += 1,
            ArpUpdate::Nothing | ArpUpdate::Confirmed => {}
        }
    }

    fn count(&mut self, counter: impl FnOnce(&mut StackCounters) -> &mut u64) -> Inbound {
        *counter(&mut self.counters) += 1;
        Inbound::Done
    }
}
