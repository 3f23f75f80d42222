//! One link with its stack and its ports: everything except waiting.
//!
//! The owner of a `Host` (an I/O thread, or a user that drives its own link) calls [`Host::step`]
//! repeatedly. A step never waits, allocates nothing and takes no lock.

use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

use millstream_link::LinkError;
use millstream_link::frame::{ETHERNET_BYTES_MAX, FrameLink, Steer};

use crate::port::{Departure, Lane};
use crate::stack::{DueAction, Stack};

use super::deliver::{Receiving, Served};
use super::neighbours::Neighbours;
use super::send::Sending;

/// The time after which an interface that is down is tried again.
const DOWN_RETRY_NS: u64 = 10_000_000;

/// The longest that a closing port waits until the link takes its last datagrams.
const CLOSING_LINK_NS: u64 = 200_000_000;

/// The longest that it waits for the answer of a neighbour.
const CLOSING_NEIGHBOUR_NS: u64 = 1_000_000_000;

/// The state of the link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Health {
    Up,
    /// The interface is down; it is tried again at this time.
    Down {
        again_ns: u64,
    },
    /// It is permanently gone, with this error number of the system.
    Dead(i32),
}

/// A link, its stack and its ports.
pub(crate) struct Host {
    link: Box<dyn FrameLink>,
    served: Served,
    receiving: Receiving,
    sending: Sending,
    health: Health,
    /// The helper that asks the kernel, where the kernel's addresses are shared.
    neighbours: Option<Neighbours>,
    leaked: u64,
}

/// The amount of work that a step did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Work {
    /// Frames received.
    pub received: usize,
    /// Frames that users handed over to be sent, or that the link took.
    pub sent: usize,
}

impl Work {
    pub fn is_none(self) -> bool {
        self == Self::default()
    }
}

impl Host {
    pub fn new(link: Box<dyn FrameLink>, stack: Stack, neighbours: Option<Neighbours>) -> Self {
        let info = link.info().clone();
        let parts_max = (info.mtu + ETHERNET_BYTES_MAX).div_ceil(info.part_bytes_max).max(1);
        let batch = info.batch_max + parts_max;
        let scratch_bytes = if parts_max > 1 { info.mtu + ETHERNET_BYTES_MAX } else { 0 };
        Self {
            served: Served::new(stack),
            receiving: Receiving::new(Arc::clone(link.memory()), batch),
            sending: Sending::new(batch, scratch_bytes),
            health: Health::Up,
            neighbours,
            leaked: 0,
            link,
        }
    }

    /// Does the work that is pending now.
    pub fn step(&mut self, now_ns: u64) -> Work {
        if !self.is_due(now_ns) {
            return Work::default();
        }
        let result = self.try_turn(now_ns);
        self.note_health(result.as_ref().map(|_| ()), now_ns);
        result.unwrap_or_default()
    }

    /// Whether the link can be tried.
    fn is_due(&self, now_ns: u64) -> bool {
        match self.health {
            Health::Up => true,
            Health::Down { again_ns } => now_ns >= again_ns,
            Health::Dead(_) => false,
        }
    }

    /// Sends what is waiting, and receives nothing: for a user whose other half receives.
    pub fn turn_out(&mut self, now_ns: u64) -> Work {
        if !self.is_due(now_ns) {
            return Work::default();
        }
        let result = self.send(now_ns).map(|sent| Work { received: 0, sent });
        self.note_health(result.as_ref().map(|_| ()), now_ns);
        result.unwrap_or_default()
    }

    fn try_turn(&mut self, now_ns: u64) -> io::Result<Work> {
        let received =
            self.receiving.take(&mut *self.link, &mut self.served, &mut self.sending, now_ns)?;
        let sent = self.send(now_ns)?;
        Ok(Work { received, sent })
    }

    fn send(&mut self, now_ns: u64) -> io::Result<usize> {
        while let Some((neighbour, mac)) = self.neighbours.as_mut().and_then(Neighbours::answer) {
            match mac {
                Some(mac) => self.served.stack.learn(neighbour, mac, now_ns),
                None => self.served.stack.forget(neighbour, now_ns),
            }
        }
        if now_ns >= self.served.stack.due_ns() {
            self.poll_stack(now_ns);
        }
        self.sending.step(&mut *self.link, &mut self.served, now_ns)
    }

    /// Does the stack's work that is due by the clock.
    fn poll_stack(&mut self, now_ns: u64) {
        while let Some(due) = self.served.stack.poll(now_ns) {
            match due {
                DueAction::Write(message) => {
                    self.sending.answer(&mut *self.link, &mut self.served.stack, &message, &[]);
                }
                DueAction::Ask(neighbour) => {
                    if let Some(neighbours) = &mut self.neighbours {
                        neighbours.ask(neighbour);
                    }
                }
            }
        }
    }

    fn note_health(&mut self, result: Result<(), &io::Error>, now_ns: u64) {
        let health = match result {
            Ok(()) => Health::Up,
            Err(error) if is_down(error) => Health::Down { again_ns: now_ns + DOWN_RETRY_NS },
            Err(error) => Health::Dead(error.raw_os_error().unwrap_or(libc::ENODEV)),
        };
        if health == self.health {
            return;
        }
        let down = health != Health::Up;
        for lane in self.served.lanes() {
            lane.state.set_down(down);
            if let Health::Dead(errno) = health {
                lane.state.end(errno);
            }
        }
        self.health = health;
    }

    /// Adds a port.
    ///
    /// # Errors
    /// When the link cannot change the selection of wanted frames.
    pub fn add(&mut self, lane: Lane) -> Result<(), LinkError> {
        let port = lane.local.port();
        lane.state.set_down(self.health != Health::Up);
        if let Health::Dead(errno) = self.health {
            lane.state.end(errno);
        }
        self.served.add(lane);
        let steered = self.steer();
        if steered.is_err() {
            self.remove(port);
        } else {
            self.sending.supply(&mut *self.link, &mut self.served);
        }
        steered
    }

    /// Sends the last datagrams of a port that is to be closed. Returns how long that may take in
    /// total, nanoseconds: 0 if nothing is left, or nothing can leave.
    pub fn closing_ns(&mut self, port: u16, now_ns: u64) -> u64 {
        self.step(now_ns);
        let Some(lane) = self.served.lane_of(port) else { return 0 };
        if self.health != Health::Up || self.link.flush().is_err() {
            return 0;
        }
        // The link closes with its last port, and discards what it has not sent.
        let is_last = self.served.lanes().len() == 1;
        let in_link = is_last && self.link.census().transmitting > 0;
        if self.sending.is_resolving_for(port) {
            CLOSING_NEIGHBOUR_NS
        } else if in_link || lane.has_departures() || self.sending.is_backed_up() {
            CLOSING_LINK_NS
        } else {
            0
        }
    }

    /// Removes a port and takes its frames back. Returns the number of missing frames.
    pub fn remove(&mut self, port: u16) -> usize {
        let Some(index) = self.served.index_of(port) else { return 0 };
        let mut lane = self.served.remove(index);
        let mut back = Vec::new();
        while let Some(Departure { frame, .. }) = lane.next_departure() {
            back.push(frame);
        }
        let missing = lane.wind_up(&mut back);
        self.leaked += missing as u64;
        self.link.give_back(&mut back);
        let _ = self.link.flush();
        if !matches!(self.health, Health::Dead(_)) {
            // The link may deliver more than is wanted; the stack ignores the excess.
            let _ = self.steer();
        }
        missing
    }

    /// Sets the link's selection of wanted frames.
    pub fn steer(&mut self) -> Result<(), LinkError> {
        let config = self.served.stack.config();
        let steer = Steer {
            addresses: config.addresses.iter().map(|subnet| subnet.address).collect(),
            udp_ports: self.served.lanes().map(|lane| lane.local.port()).collect(),
            own_addresses: config.own_addresses,
            vlan: config.vlan,
            ..Steer::default()
        };
        self.link.steer(&steer)
    }

    /// A descriptor that is readable when there is something to receive. `None` where only a poll
    /// can show that, or where there is nothing to poll.
    pub fn poll_fd(&self) -> Option<BorrowedFd<'_>> {
        if self.health == Health::Up { self.link.poll_fd() } else { None }
    }

    /// Returns how long there is no work as long as nothing arrives, nanoseconds.
    pub fn patience_ns(&self, now_ns: u64) -> u64 {
        /// The poll interval of a link without a descriptor.
        const LOOK_EVERY_NS: u64 = 200_000;
        /// The poll interval of an idle link, at which it can detect an interface that is gone and
        /// free a stalled ring.
        const TEND_EVERY_NS: u64 = 100_000_000;
        /// The poll interval of a link that is busy transmitting.
        const PUSH_EVERY_NS: u64 = 100_000;
        /// The poll interval of ports that wait for a neighbour.
        const RESOLVE_EVERY_NS: u64 = 10_000_000;
        match self.health {
            Health::Dead(_) => return u64::MAX,
            Health::Down { again_ns } => return again_ns.saturating_sub(now_ns),
            Health::Up => {}
        }
        let due_ns = self.served.stack.due_ns().saturating_sub(now_ns);
        let mut patience = due_ns.min(TEND_EVERY_NS);
        if self.link.poll_fd().is_none() {
            patience = patience.min(LOOK_EVERY_NS);
        }
        if self.sending.is_resolving() {
            patience = patience.min(RESOLVE_EVERY_NS);
        }
        if self.sending.is_unfinished() {
            patience = patience.min(PUSH_EVERY_NS);
        }
        patience
    }

    /// Whether some port has unread datagrams to send.
    pub fn has_departures(&self) -> bool {
        self.served.lanes().any(Lane::has_departures)
    }

    /// Whether datagrams wait for the Ethernet address of their next hop.
    pub fn is_resolving(&self) -> bool {
        self.sending.is_resolving()
    }

    /// Whether own addresses are claimed, or lost to another station.
    pub fn is_settled(&self) -> bool {
        !self.served.stack.config().own_addresses || self.served.stack.is_settled()
    }

    pub fn stack(&self) -> &Stack {
        &self.served.stack
    }

    pub fn link(&mut self) -> &mut dyn FrameLink {
        &mut *self.link
    }

    pub fn ports(&self) -> impl Iterator<Item = &Lane> {
        self.served.lanes()
    }

    /// Returns the frames that closed ports did not give back.
    pub fn leaked(&self) -> u64 {
        self.leaked
    }

    /// Whether the link is permanently gone.
    pub fn is_dead(&self) -> bool {
        matches!(self.health, Health::Dead(_))
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        // Frames given back but not yet passed on belong to the link, which closes now.
        let _ = self.link.flush();
    }
}

/// Whether the error means that the interface may come back.
fn is_down(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NetworkDown | io::ErrorKind::NetworkUnreachable)
}
