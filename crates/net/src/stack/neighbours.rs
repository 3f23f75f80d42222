//! Which Ethernet address belongs to which IPv4 address (RFC 826; times: RFC 1122, 2.3.2).
//!
//! An entry is asked for, then fresh, then stale. A stale one that is used is asked for again,
//! that station alone, while its address goes on being used. Nobody enters the table by speaking
//! unasked, except by asking for us; and those give way first when it is full.

use std::net::Ipv4Addr;

use millstream_wire::ethernet::Mac;

const SECOND_NS: u64 = 1_000_000_000;
/// Requests to one address: at most one a second (RFC 1122, 2.3.2.1).
const ASK_EVERY_NS: u64 = SECOND_NS;
const ASKS_MAX: u8 = 3;
/// How long an answer counts: of the station, and of the kernel, of which asking costs no frame and
/// which hears of a neighbour that has moved, or ends, by itself.
const FRESH_NS: u64 = 60 * SECOND_NS;
const FRESH_BY_KERNEL_NS: u64 = 5 * SECOND_NS;
const STALE_NS: u64 = 600 * SECOND_NS;
/// Pause before an address that did not answer is asked for again; doubled twice.
const REST_NS: u64 = SECOND_NS;
const REST_DOUBLINGS_MAX: u8 = 2;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Everybody is asked; so often so far.
    Asking(u8),
    /// Confirmed not long ago.
    Fresh,
    /// Confirmed long ago, or never, and not in use.
    Stale,
    /// Stale and in use: it is asked; so often so far.
    Probing(u8),
    /// Did not answer, and is not asked before the time.
    Failed { again_ns: u64 },
}

#[derive(Debug, Clone, Copy)]
struct Neighbour {
    address: Ipv4Addr,
    mac: Mac,
    state: State,
    /// When something has to be done about it.
    due_ns: u64,
    /// Times that it did not answer, in a row.
    failures: u8,
}

/// What is known about an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NeighbourState {
    /// Its Ethernet address.
    At(Mac),
    /// It is being asked for.
    Pending,
    /// It did not answer.
    NoAnswer,
    /// There is no room to remember it.
    Full,
}

/// How an Ethernet address was learnt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ArpSource {
    /// It answered us; or the kernel says so.
    Answer,
    /// It asked for us.
    Asked,
    /// It spoke of itself to everybody or anybody.
    Spoke,
}

/// What is to be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NeighbourTask {
    /// Ask for the address: everybody, or the station that had it.
    Ask { address: Ipv4Addr, at: Option<Mac> },
    /// Say that it did not answer.
    Lost,
}

/// What became of something heard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ArpUpdate {
    Nothing,
    Confirmed,
    Moved,
    Full,
}

/// The table. Its size never changes.
#[derive(Debug)]
pub(super) struct Neighbours {
    entries: Vec<Neighbour>,
    entries_max: usize,
    fresh_ns: u64,
    due_ns: u64,
    generation: u64,
}

impl Neighbours {
    /// A table of so many; `by_kernel`: it is the kernel that asks, and tells.
    pub(super) fn new(entries_max: usize, by_kernel: bool) -> Neighbours {
        let entries = Vec::with_capacity(entries_max);
        let fresh_ns = if by_kernel { FRESH_BY_KERNEL_NS } else { FRESH_NS };
        Neighbours { entries, entries_max, fresh_ns, due_ns: u64::MAX, generation: 0 }
    }

    /// Entries that there is memory for.
    #[cfg(test)]
    pub(super) fn capacity(&self) -> usize {
        self.entries.capacity()
    }

    /// Changes whenever a next hop may have changed.
    pub(super) fn generation(&self) -> u64 {
        self.generation
    }

    /// When [`Neighbours::poll`] has something to do.
    pub(super) fn due_ns(&self) -> u64 {
        self.due_ns
    }

    /// Addresses being asked for.
    pub(super) fn asking(&self) -> impl Iterator<Item = Ipv4Addr> {
        let asking = |entry: &&Neighbour| matches!(entry.state, State::Asking(_));
        self.entries.iter().filter(asking).map(|entry| entry.address)
    }

    /// Whether an address is being asked for, by us.
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

    /// What is known about an address that something is to be sent to.
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

    /// A new entry, in place of the one least missed if the table is full of old ones.
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

    /// Takes note of who has an address.
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
            // Believed, and asked about when it is used.
            self.set(index, State::Stale, now_ns + STALE_NS);
        }
        if moved { ArpUpdate::Moved } else { ArpUpdate::Confirmed }
    }

    /// Somebody who knows says that the address does not answer.
    pub(super) fn failed(&mut self, address: Ipv4Addr, now_ns: u64) -> bool {
        let Some(index) = self.find(address) else { return false };
        let failures = self.entries[index].failures;
        self.entries[index].failures = failures.saturating_add(1);
        let again_ns = now_ns + (REST_NS << failures.min(REST_DOUBLINGS_MAX));
        self.set(index, State::Failed { again_ns }, now_ns + STALE_NS);
        true
    }

    /// The next thing that is due, if any.
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
