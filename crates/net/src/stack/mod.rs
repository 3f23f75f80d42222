//! An IPv4 host as a state machine without I/O: frames in, frames out, the time as an argument.
//!
//! ```text
//!   frame ─▶ receive ─▶ Udp (where the payload lies) | Answer ─▶ write ─▶ frame | Done (counted)
//!   datagram ─▶ emit (headers before it) ─▶ frame | Pending | why not
//!   clock ─▶ poll ─▶ Write ─▶ write ─▶ frame | Ask (the kernel, for a neighbour)
//! ```
//!
//! Two modes. With **own addresses** the kernel does not have them: ARP, echo and "port
//! unreachable" are answered here, addresses are claimed by RFC 5227, neighbours resolved by RFC
//! 826. With **shared addresses** the kernel keeps answering; it resolves the neighbours on request
//! ([`DueAction::Ask`]), and [`Stack::learn`] enters its answers.
//!
//! The host follows RFC 1122, with one omission: it neither fragments nor reassembles. Outgoing
//! datagrams must fit the MTU, and have "don't fragment" set unless a router has reported that it
//! would have to fragment them; incoming fragments are counted.

mod arp;
mod claim;
mod config;
mod counters;
mod due_frame;
mod emit;
mod icmp;
mod limiter;
mod neighbours;
mod parts;
mod receive;
mod routes;
mod template;
#[cfg(test)]
mod tests;

use std::net::Ipv4Addr;

pub use millstream_link::Subnet;
use millstream_wire::ethernet::{HEADER_LEN, Mac, TAG_LEN};
use millstream_wire::{ipv4, udp};

pub use config::{AddressClaim, ChecksumPolicy, Route, StackConfig, StackError};
pub use counters::StackCounters;
pub use due_frame::DueFrame;
pub use emit::{EmitError, EmitHop};
pub use receive::{Inbound, ReceivedDatagram, ReceivedFrame};
pub use routes::Unreachable;
pub use template::HeaderTemplate;

use claim::{AddressState, Claims, Say};
use limiter::Limiter;
use neighbours::{ArpSource, ArpUpdate, NeighbourTask, Neighbours};
use routes::Routes;

/// An action that is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DueAction {
    /// Write this frame by [`Stack::write`] and transmit it.
    Write(DueFrame),
    /// Ask the kernel for this neighbour, and pass the answer to [`Stack::learn`].
    Ask(Ipv4Addr),
}

/// An IPv4 host on one wire.
#[derive(Debug)]
pub struct Stack {
    config: StackConfig,
    routes: Routes,
    neighbours: Neighbours,
    claims: Claims,
    /// Whether each UDP port is registered.
    ports: Box<[bool]>,
    paths: emit::Paths,
    errors: Limiter,
    counters: StackCounters,
    /// The identification of the next packet.
    next_id: u16,
}

impl Stack {
    /// Creates a host with the configuration `config`.
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
            ports: vec![false; 1 << 16].into(),
            paths: emit::Paths::new(),
            // RFC 1812, 4.3.2.8: errors are limited, in rate and in bursts.
            errors: Limiter::new(100, 20),
            counters: StackCounters::default(),
            next_id: config.seed as u16,
            config,
        })
    }

    /// Returns the stack's configuration.
    #[must_use]
    pub fn config(&self) -> &StackConfig {
        &self.config
    }

    /// Returns the bytes of Ethernet, IPv4 and UDP headers before the payload of a transmitted
    /// datagram.
    #[must_use]
    pub fn header_len(&self) -> usize {
        self.link_header_len() + ipv4::HEADER_LEN + udp::HEADER_LEN
    }

    fn link_header_len(&self) -> usize {
        HEADER_LEN + if self.config.vlan.is_some() { TAG_LEN } else { 0 }
    }

    /// Returns the longest UDP payload that fits the MTU, bytes.
    #[must_use]
    pub fn payload_len_max(&self) -> usize {
        self.config.mtu - ipv4::HEADER_LEN - udp::HEADER_LEN
    }

    /// Registers a UDP port, so that its datagrams are delivered. Returns false if it was
    /// registered already.
    pub fn open_port(&mut self, port: u16) -> bool {
        !std::mem::replace(&mut self.ports[usize::from(port)], true)
    }

    /// Removes the registration of a port.
    pub fn close_port(&mut self, port: u16) {
        self.ports[usize::from(port)] = false;
    }

    /// Whether a port is registered.
    #[must_use]
    #[inline]
    pub fn has_port(&self, port: u16) -> bool {
        self.ports[usize::from(port)]
    }

    /// Whether all own addresses are settled: in use, or lost to another station.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        self.claims.is_settled()
    }

    /// Whether an address is ours, and claimed.
    #[must_use]
    pub fn is_ours(&self, address: Ipv4Addr) -> bool {
        self.config.addresses.iter().any(|own| own.address == address)
            && self.claims.state(address) == AddressState::Ours
    }

    /// Returns the counts of packets by outcome.
    #[must_use]
    pub fn counters(&self) -> StackCounters {
        self.counters
    }

    /// Counts a frame with too many parts to read.
    pub fn note_too_many_parts(&mut self) {
        self.counters.too_many_parts += 1;
    }

    /// Returns a number that changes whenever a next hop may have changed: an [`EmitHop::Pending`]
    /// may be known now.
    #[must_use]
    pub fn generation(&self) -> u64 {
        self.neighbours.generation() + self.claims.generation()
    }

    /// Returns when [`Stack::poll`] next has something to do, on the clock of its argument;
    /// `u64::MAX` for never.
    #[must_use]
    pub fn due_ns(&self) -> u64 {
        self.neighbours.due_ns().min(self.claims.due_ns())
    }

    /// Returns the next action that is due at `now_ns`. Call it until there is no more, whenever
    /// [`Stack::due_ns`] has passed. A frame that cannot be sent may be dropped, because requests
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
                    // There is no route any more: our address was lost. The entry expires by
                    // itself.
                    let Some(source) = self.source_for(address) else { continue };
                    let to = at.unwrap_or(Mac::BROADCAST);
                    return Some(DueAction::Write(self.ask(to, source, address)));
                }
                NeighbourTask::Lost => self.counters.neighbours_lost += 1,
            }
        }
        None
    }

    /// Enters the kernel's answer about an address (shared addresses).
    pub fn learn(&mut self, address: Ipv4Addr, mac: [u8; 6], now_ns: u64) {
        let mac = Mac(mac);
        if mac.is_station() {
            let learnt = self.neighbours.heard(address, mac, ArpSource::Answer, now_ns);
            self.note(learnt);
        }
    }

    /// Enters that a neighbour did not answer the kernel (shared addresses).
    pub fn forget(&mut self, address: Ipv4Addr, now_ns: u64) {
        if self.neighbours.failed(address, now_ns) {
            self.counters.neighbours_lost += 1;
        }
    }

    /// Returns the neighbours that the kernel is being asked for (shared addresses), so that its
    /// reports about others can be ignored.
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
