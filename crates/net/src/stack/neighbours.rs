//! The neighbour table: Ethernet addresses of IPv4 addresses (RFC 826; times: RFC 1122, 2.3.2).
//!
//! An entry is requested, then fresh, then stale. When a stale entry is used, the station is
//! requested again by unicast, while its address stays in use. Unsolicited packets create no
//! entries, except requests for us; those entries are replaced first when the table is full.

use std::net::Ipv4Addr;

use millstream_wire::ethernet::Mac;

const SECOND_NS: u64 = 1_000_000_000;
/// The interval of requests to one address: at most one a second (RFC 1122, 2.3.2.1).
const ASK_EVERY_NS: u64 = SECOND_NS;
const ASKS_MAX: u8 = 3;
/// The lifetime of an answer: of the station, and of the kernel. Asking the kernel costs no frame,
/// and the kernel itself notices a neighbour that has moved or gone.
const FRESH_NS: u64 = 60 * SECOND_NS;
const FRESH_BY_KERNEL_NS: u64 = 5 * SECOND_NS;
const STALE_NS: u64 = 600 * SECOND_NS;
/// The pause before an address that did not answer is requested again; doubled twice.
const REST_NS: u64 = SECOND_NS;
const REST_DOUBLINGS_MAX: u8 = 2;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Requested by broadcast; the number of requests so far.
    Asking(u8),
    /// Confirmed recently.
    Fresh,
    /// Confirmed long ago, or never, and not in use.
    Stale,
    /// Stale and in use, requested by unicast; the number of requests so far.
    Probing(u8),
    /// Did not answer, and is not requested before this time.
    Failed { again_ns: u64 },
}

#[derive(Debug, Clone, Copy)]
struct Neighbour {
    address: Ipv4Addr,
    mac: Mac,
    state: State,
    /// The time of the next action.
    due_ns: u64,
    /// The number of consecutive failures.
    failures: u8,
}

/// The knowledge about an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NeighbourState {
    /// Its Ethernet address.
    At(Mac),
    /// It is being requested.
    Pending,
    /// It did not answer.
    NoAnswer,
    /// The table has no room for it.
    Full,
}

/// The way in which an Ethernet address was learnt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ArpSource {
    /// The station answered us; or the kernel reports it.
    Answer,
    /// The station asked for us.
    Asked,
    /// The station announced itself, to all or to another station.
    Spoke,
}

/// An action that is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NeighbourTask {
    /// Request the address: by broadcast, or from the station that had it.
    Ask { address: Ipv4Addr, at: Option<Mac> },
    /// Report that it did not answer.
    Lost,
}

/// The result of a received ARP packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ArpUpdate {
    Nothing,
    Confirmed,
    Moved,
    Full,
}

/// The table. Its size is constant.
#[derive(Debug)]
pub(super) struct Neighbours {
    entries: Vec<Neighbour>,
    entries_max: usize,
    fresh_ns: u64,
    due_ns: u64,
    generation: u64,
}

impl Neighbours {
    /// Creates a table of `entries_max`; `by_kernel`: the kernel requests, and reports.
    pub(super) fn new(entries_max: usize, by_kernel: bool) -> Neighbours {
        let entries = Vec::with_capacity(entries_max);
        let fresh_ns = if by_kernel { FRESH_BY_KERNEL_NS } else { FRESH_NS };
        Neighbours { entries, entries_max, fresh_ns, due_ns: u64::MAX, generation: 0 }
    }

    /// Returns the number of entries that there is memory for.
    #[cfg(test)]
    pub(super) fn capacity(&self) -> usize {
        self.entries.capacity()
    }

    /// Returns a number that changes whenever a next hop may have changed.
    pub(super) fn generation(&self) -> u64 {
        self.generation
    }

    /// Returns when [`Neighbours::poll`] has something to do.
    pub(super) fn due_ns(&self) -> u64 {
        self.due_ns
    }

    /// Lists the addresses that are being requested.
    pub(super) fn asking(&self) -> impl Iterator<Item = Ipv4Addr> {
        let asking = |entry: &&Neighbour| matches!(entry.state, State::Asking(_));
        self.entries.iter().filter(asking).map(|entry| entry.address)
    }

    /// Whether the stack is requesting an address.
    pub(super) fn is_asked(&self, address: Ipv4Addr) -> bool {
        self.find(address).is_some_and(|index| {
            matches!(self.entries[index].state, State::Asking(_) | State::Probing(_))
        })
    }

    fn find(&self, address: Ipv4Addr) -> Option<usize> {
        self.entries.iter().position(|entry| entry.address == address)
    }

    fn set(&mut self, index: usize, state: State, due_ns: u64) {
        let entry = &mut self.entries[index];
        (entry.state, entry.due_ns) = (state, due_ns);
        self.due_ns = self.due_ns.min(due_ns);
        self.generation += 1;
    }

    /// Returns the state of an address to which something is to be sent.
    pub(super) fn use_of(&mut self, address: Ipv4Addr, now_ns: u64) -> NeighbourState {
        let Some(index) = self.find(address) else {
            return match self.insert(address, Mac::default(), State::Asking(0), now_ns) {
                true => NeighbourState::Pending,
                false => NeighbourState::Full,
            };
        };
        match self.entries[index].state {
            State::Fresh | State::Probing(_) => NeighbourState::At(self.entries[index].mac),
            State::Stale => {
                self.set(index, State::Probing(0), now_ns);
                NeighbourState::At(self.entries[index].mac)
            }
            State::Asking(_) => NeighbourState::Pending,
            State::Failed { again_ns } if now_ns < again_ns => NeighbourState::NoAnswer,
            State::Failed { .. } => {
                self.set(index, State::Asking(0), now_ns);
                NeighbourState::Pending
            }
        }
    }

    /// Inserts an entry, in place of the least needed one if the table is full of old ones.
    fn insert(&mut self, address: Ipv4Addr, mac: Mac, state: State, due_ns: u64) -> bool {
        if self.entries.len() == self.entries_max {
            let idle = |(_, entry): &(usize, &Neighbour)| {
                matches!(entry.state, State::Stale | State::Failed { .. })
            };
            let old = self.entries.iter().enumerate().filter(idle);
            let Some((index, _)) = old.min_by_key(|(_, entry)| entry.due_ns) else { return false };
            self.entries.swap_remove(index);
        }
        self.entries.push(Neighbour { address, mac, state, due_ns, failures: 0 });
        self.due_ns = self.due_ns.min(due_ns);
        self.generation += 1;
        true
    }

    /// Processes a report of an address.
    pub(super) fn heard(
        &mut self,
        address: Ipv4Addr,
        mac: Mac,
        how: ArpSource,
        now_ns: u64,
    ) -> ArpUpdate {
        let Some(index) = self.find(address) else {
            if how == ArpSource::Spoke {
                return ArpUpdate::Nothing;
            }
            return match self.insert(address, mac, State::Stale, now_ns + STALE_NS) {
                true => ArpUpdate::Nothing,
                false => ArpUpdate::Full,
            };
        };
        let entry = &mut self.entries[index];
        let had = !matches!(entry.state, State::Asking(_) | State::Failed { .. });
        let moved = had && entry.mac != mac;
        entry.mac = mac;
        if !had || how == ArpSource::Answer {
            entry.failures = 0;
            self.set(index, State::Fresh, now_ns + self.fresh_ns);
        } else if moved {
            // The entry is accepted, and confirmed when it is used.
            self.set(index, State::Stale, now_ns + STALE_NS);
        }
        if moved { ArpUpdate::Moved } else { ArpUpdate::Confirmed }
    }

    /// Records that an address does not answer, on the report of a reliable source.
    pub(super) fn failed(&mut self, address: Ipv4Addr, now_ns: u64) -> bool {
        let Some(index) = self.find(address) else { return false };
        let failures = self.entries[index].failures;
        self.entries[index].failures = failures.saturating_add(1);
        let again_ns = now_ns + (REST_NS << failures.min(REST_DOUBLINGS_MAX));
        self.set(index, State::Failed { again_ns }, now_ns + STALE_NS);
        true
    }

    /// Returns the next due action, if any.
    pub(super) fn poll(&mut self, now_ns: u64) -> Option<NeighbourTask> {
        if now_ns < self.due_ns {
            return None;
        }
        let mut index = 0;
        while index < self.entries.len() {
            let entry = self.entries[index];
            if entry.due_ns > now_ns {
                index += 1;
                continue;
            }
            let address = entry.address;
            let again_ns = now_ns + ASK_EVERY_NS;
            match entry.state {
                State::Asking(asks) if asks < ASKS_MAX => {
                    self.entries[index].state = State::Asking(asks + 1);
                    self.entries[index].due_ns = again_ns;
                    return Some(NeighbourTask::Ask { address, at: None });
                }
                State::Asking(_) => {
                    self.failed(address, now_ns);
                    return Some(NeighbourTask::Lost);
                }
                State::Probing(asks) if asks < ASKS_MAX => {
                    self.entries[index].state = State::Probing(asks + 1);
                    self.entries[index].due_ns = again_ns;
                    return Some(NeighbourTask::Ask { address, at: Some(entry.mac) });
                }
                State::Probing(_) => self.set(index, State::Asking(0), now_ns),
                State::Fresh => self.set(index, State::Stale, now_ns + STALE_NS),
                State::Stale | State::Failed { .. } => {
                    self.entries.swap_remove(index);
                    self.generation += 1;
                }
            }
        }
        let due = self.entries.iter().map(|entry| entry.due_ns);
        self.due_ns = due.min().unwrap_or(u64::MAX);
        None
    }
}
