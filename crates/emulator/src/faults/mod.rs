//! Faults on demand: failures of a radio and its network, switched on while it runs.
//!
//! A fault is a line of text. Packet faults are rules of `millstream_link::fault` around the
//! radio's ports, for one direction and one class of packets; device faults act on the radio
//! itself.
//!
//! ```text
//! lose to_host data skip=100 count=1        one data packet of a receive stream
//! lose to_host status for_ms=500            no credit for a transmit stream for half a second
//! corrupt to_device data to=8 every=1000    bits in the headers of transmit packets
//! stall ms=50 at_tick=1000000               the device does nothing for 50 ms
//! reboot silent_ms=200                      power off and on again
//! ```
//!
//! ```
//! use millstream_emulator::{Radio, RadioConfig};
//!
//! let ports = RadioConfig { discovery_port: 0, rpc_port: 0, chdr_port: 0, ..Default::default() };
//! let radio = Radio::start(ports)?;
//! let id = radio.faults().add("lose to_host data count=1")?;
//! assert_eq!(radio.faults().list()[0].hit, 0);
//! radio.faults().remove(id);
//! # Ok::<(), millstream_emulator::Error>(())
//! ```

mod class;
mod device;
mod machine;
mod spec;

pub(crate) use device::AfterFaults;
pub(crate) use machine::{DeviceFaults, Management};
pub(crate) use spec::check;
pub use spec::fault_forms;

use crate::time::monotonic_ns;
use class::{Class, PacketDirection};
use machine::{FaultKind, PendingFault};
use millstream_link::fault::{FaultSwitch, RuleCounts, RuleId, TooManyRules};
use millstream_link::port::Port;
use millstream_wire::chdr::Width;
use serde::Serialize;
use spec::{Fault, Packets};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The most faults of a radio, including those that are done.
pub const FAULTS_MAX: usize = 64;

/// Why a fault was rejected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FaultError {
    /// The text does not have an accepted form.
    #[error(
        "cannot use fault `{text}`: {reason}; `millstream sim fault add --help` lists all forms"
    )]
    Spec {
        /// The given text.
        text: String,
        /// The fault in the text, and the expected form.
        reason: String,
    },
    /// The radio has the most faults already.
    #[error("there are already {FAULTS_MAX} faults, which is the limit: remove some first")]
    TooMany,
}

impl From<TooManyRules> for FaultError {
    fn from(_: TooManyRules) -> Self {
        Self::TooMany
    }
}

/// One fault of a radio, with its counts so far.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct FaultState {
    /// Its number, for removal.
    pub id: u64,
    /// Its text.
    pub fault: String,
    /// Packets of its direction and class that passed while it could act.
    pub matched: u64,
    /// The number of times it acted.
    pub hit: u64,
    /// Packets and copies that it delays now.
    pub held: u64,
    /// Packets and copies that should have come later and are dropped.
    pub overflowed: u64,
    /// It can act no more.
    pub done: bool,
}

/// The faults of one radio. Clones share them.
#[derive(Debug, Clone)]
pub struct Faults {
    board: Arc<Board>,
}

#[derive(Debug)]
struct Board {
    /// By `Wire::index`.
    switches: [FaultSwitch; 4],
    /// The CHDR width of the packets.
    width: Width,
    machine: Arc<DeviceFaults>,
    entries: Mutex<Entries>,
}

#[derive(Debug, Default)]
struct Entries {
    list: Vec<Entry>,
    last_id: u64,
}

#[derive(Debug)]
struct Entry {
    id: u64,
    text: String,
    place: FaultPoint,
}

/// The place where a fault acts.
#[derive(Debug)]
enum FaultPoint {
    Rule(usize, RuleId),
    /// Set once it was applied.
    Machine(FaultKind, Arc<AtomicBool>),
}

impl Faults {
    pub(crate) fn new(machine: Arc<DeviceFaults>, width: Width) -> Self {
        let switches = std::array::from_fn(|_| FaultSwitch::new(monotonic_ns));
        Self { board: Arc::new(Board { switches, width, machine, entries: Mutex::default() }) }
    }

    /// Puts the packet faults between a port and its user: the port of CHDR packets, or that of
    /// discovery.
    pub(crate) fn wrap(&self, port: Port, discovery: bool) -> Port {
        let switch = |direction| &self.board.switches[switch_index(direction, discovery)];
        Port {
            local: port.local,
            rx: switch(PacketDirection::ToDevice).wrap_rx(port.rx),
            tx: switch(PacketDirection::ToHost).wrap_tx(port.tx),
        }
    }

    /// Adds the fault of `text`; returns its number.
    ///
    /// # Errors
    /// [`FaultError`], with the expected form.
    pub fn add(&self, text: &str) -> Result<u64, FaultError> {
        let fault = spec::parse(text)?;
        let mut entries = self.lock();
        if entries.list.len() == FAULTS_MAX {
            return Err(FaultError::TooMany);
        }
        let place = match fault {
            Fault::Packets(packets) => self.add_rule(packets)?,
            Fault::Device { kind, at_tick } => {
                let struck = Arc::new(AtomicBool::new(false));
                self.board.machine.push(PendingFault {
                    kind,
                    at_tick,
                    struck: Arc::clone(&struck),
                });
                FaultPoint::Machine(kind, struck)
            }
        };
        entries.last_id += 1;
        let id = entries.last_id;
        entries.list.push(Entry { id, text: text.trim().to_owned(), place });
        Ok(id)
    }

    /// Removes a fault; returns its counts, if the number exists. Packets that it delays are
    /// released, and a closed management port reopens.
    pub fn remove(&self, id: u64) -> Option<FaultState> {
        let mut entries = self.lock();
        let index = entries.list.iter().position(|entry| entry.id == id)?;
        Some(self.take_away(entries.list.remove(index)))
    }

    /// Removes all faults; returns their number.
    pub fn clear(&self) -> usize {
        let entries = std::mem::take(&mut self.lock().list);
        let count = entries.len();
        entries.into_iter().for_each(|entry| drop(self.take_away(entry)));
        count
    }

    /// Returns every fault that was added and not removed, including those that are done.
    pub fn list(&self) -> Vec<FaultState> {
        self.lock().list.iter().map(|entry| self.state(entry)).collect()
    }

    fn add_rule(&self, mut packets: Packets) -> Result<FaultPoint, FaultError> {
        let index = switch_index(packets.direction, packets.class == Class::Discovery);
        packets.select.from_ns = packets.select.from_ns.saturating_add(monotonic_ns());
        let protocol = self.board.machine.protocol.clone();
        let rule = packets.into_rule(self.board.width, protocol);
        Ok(FaultPoint::Rule(index, self.board.switches[index].add(rule)?))
    }

    fn take_away(&self, entry: Entry) -> FaultState {
        let state = self.state(&entry);
        match &entry.place {
            FaultPoint::Rule(index, rule) => match self.board.switches[*index].remove(*rule) {
                Some(tally) => state.with(tally),
                None => state,
            },
            FaultPoint::Machine(kind, struck) => {
                self.board.machine.withdraw(*kind, struck);
                state
            }
        }
    }

    fn state(&self, entry: &Entry) -> FaultState {
        let state = FaultState {
            id: entry.id,
            fault: entry.text.clone(),
            matched: 0,
            hit: 0,
            held: 0,
            overflowed: 0,
            done: false,
        };
        match &entry.place {
            FaultPoint::Rule(index, rule) => {
                state.with(self.board.switches[*index].tally(*rule).unwrap_or_default())
            }
            FaultPoint::Machine(_, struck) => {
                let struck = struck.load(Ordering::Acquire);
                FaultState { hit: struck.into(), done: struck, ..state }
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Entries> {
        self.board.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl FaultState {
    fn with(self, tally: RuleCounts) -> Self {
        let RuleCounts { matched, hit, held, overflowed, done, .. } = tally;
        Self { matched, hit, held, overflowed, done, ..self }
    }
}

/// Returns the switch of a direction; CHDR and discovery each have one per direction.
fn switch_index(direction: PacketDirection, discovery: bool) -> usize {
    usize::from(direction == PacketDirection::ToDevice) + 2 * usize::from(discovery)
}

#[cfg(test)]
mod tests;
