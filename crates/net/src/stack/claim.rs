//! The claim of own addresses: probes, announcements and defence (RFC 5227).

use std::net::Ipv4Addr;

use millstream_stats::Random;
use millstream_wire::arp::ArpRepr;
use millstream_wire::ethernet::Mac;

use super::config::AddressClaim;

const MILLI_NS: u64 = 1_000_000;

/// The constants of RFC 5227, 1.1, as times in milliseconds.
#[derive(Debug, Clone, Copy)]
struct Times {
    /// The latest time of the first probe.
    probe_wait_ms: u64,
    probes: u8,
    /// The least and the most time between two probes.
    probe_ms: (u64, u64),
    announce_wait_ms: u64,
    announce_ms: u64,
}

const STANDARD: Times = Times {
    probe_wait_ms: 1000,
    probes: 3,
    probe_ms: (1000, 2000),
    announce_wait_ms: 2000,
    announce_ms: 2000,
};

/// Half of this is more than any switch or host on a cable takes.
const QUICK: Times = Times {
    probe_wait_ms: 5,
    probes: 3,
    probe_ms: (40, 60),
    announce_wait_ms: 80,
    announce_ms: 2000,
};

const ANNOUNCEMENTS: u8 = 2;
/// The interval in which an address is defended only once.
const DEFEND_NS: u64 = 10_000 * MILLI_NS;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// The number of probes sent; not in use.
    Probing(u8),
    /// In use; the number of announcements sent.
    Announcing(u8),
    /// In use.
    Held,
    /// Another station has the address.
    Taken,
}

/// An own address and the state of its claim.
#[derive(Debug)]
struct Claimed {
    address: Ipv4Addr,
    phase: Phase,
    due_ns: u64,
    defended_ns: Option<u64>,
}

/// The effect of an ARP packet on our addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Conflict {
    /// No conflict.
    None,
    /// Another station has the address that we were about to use: we give it up.
    Lost,
    /// Another station uses our address.
    Met,
}

/// A packet to be broadcast.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Say {
    /// A probe: is the address in use?
    Probe(Ipv4Addr),
    /// An announcement of our address.
    Announce(Ipv4Addr),
}

/// The own addresses of a stack.
#[derive(Debug)]
pub(super) struct Claims {
    mac: Mac,
    times: Times,
    claimed: Vec<Claimed>,
    random: Random,
    due_ns: u64,
    generation: u64,
}

impl Claims {
    /// Creates the claims, which begin with the first poll.
    pub(super) fn new(
        mac: Mac,
        how: AddressClaim,
        addresses: impl Iterator<Item = Ipv4Addr>,
        seed: u64,
    ) -> Claims {
        let phase = match how {
            AddressClaim::Announce => Phase::Announcing(0),
            AddressClaim::Quick | AddressClaim::Standard => Phase::Probing(0),
        };
        let times = if how == AddressClaim::Standard { STANDARD } else { QUICK };
        let claimed: Vec<_> = addresses
            .map(|address| Claimed { address, phase, due_ns: 0, defended_ns: None })
            .collect();
        let due_ns = if claimed.is_empty() { u64::MAX } else { 0 };
        let random = Random::new(seed);
        Claims { mac, times, claimed, random, due_ns, generation: 0 }
    }

    pub(super) fn due_ns(&self) -> u64 {
        self.due_ns
    }

    pub(super) fn generation(&self) -> u64 {
        self.generation
    }

    /// Returns the state of an address; one that was never claimed may be used.
    pub(super) fn state(&self, address: Ipv4Addr) -> AddressState {
        match self.claimed.iter().find(|own| own.address == address).map(|own| own.phase) {
            Some(Phase::Probing(_)) => AddressState::Tentative,
            Some(Phase::Taken) => AddressState::Taken,
            Some(Phase::Announcing(_) | Phase::Held) | None => AddressState::Ours,
        }
    }

    /// Whether every address is in use, or lost.
    pub(super) fn is_settled(&self) -> bool {
        !self.claimed.iter().any(|own| matches!(own.phase, Phase::Probing(_)))
    }

    /// Returns a time between the two, which the seed determines.
    fn between(&mut self, (least, most): (u64, u64)) -> u64 {
        (least + self.random.bits() % (most - least + 1)) * MILLI_NS
    }

    /// Returns the next packet to send, if any is due.
    pub(super) fn poll(&mut self, now_ns: u64) -> Option<Say> {
        if now_ns < self.due_ns {
            return None;
        }
        for index in 0..self.claimed.len() {
            if self.claimed[index].due_ns > now_ns {
                continue;
            }
            if let Some(say) = self.step(index, now_ns) {
                return Some(say);
            }
        }
        self.due_ns = self.claimed.iter().map(|own| own.due_ns).min().unwrap_or(u64::MAX);
        None
    }

    fn step(&mut self, index: usize, now_ns: u64) -> Option<Say> {
        let Claimed { address, phase, due_ns, .. } = self.claimed[index];
        let times = self.times;
        let (phase, wait_ns, say) = match phase {
            // The first poll waits a little, so that not all stations start at once.
            Phase::Probing(0) if due_ns == 0 => {
                (phase, self.between((1, times.probe_wait_ms)), None)
            }
            Phase::Probing(sent) if sent < times.probes => {
                let last = sent + 1 == times.probes;
                let wait_ns = match last {
                    true => times.announce_wait_ms * MILLI_NS,
                    false => self.between(times.probe_ms),
                };
                (Phase::Probing(sent + 1), wait_ns, Some(Say::Probe(address)))
            }
            Phase::Probing(_) => {
                self.generation += 1;
                let wait_ns = times.announce_ms * MILLI_NS;
                (Phase::Announcing(1), wait_ns, Some(Say::Announce(address)))
            }
            Phase::Announcing(sent) if sent < ANNOUNCEMENTS => {
                let wait_ns = times.announce_ms * MILLI_NS;
                (Phase::Announcing(sent + 1), wait_ns, Some(Say::Announce(address)))
            }
            Phase::Announcing(_) | Phase::Held => (Phase::Held, u64::MAX, None),
            Phase::Taken => (Phase::Taken, u64::MAX, None),
        };
        let own = &mut self.claimed[index];
        (own.phase, own.due_ns) = (phase, now_ns.saturating_add(wait_ns).max(1));
        say
    }

    /// Processes an ARP packet. An address in use is kept, and defended by an announcement, at most
    /// once in 10 s (RFC 5227, 2.4 (c)).
    pub(super) fn heard(&mut self, arp: &ArpRepr, now_ns: u64) -> Conflict {
        if arp.sender_mac == self.mac {
            return Conflict::None;
        }
        let is_meant = |own: &&mut Claimed| {
            let probing = matches!(own.phase, Phase::Probing(_));
            arp.sender == own.address || (probing && arp.is_probe() && arp.target == own.address)
        };
        let Some(own) = self.claimed.iter_mut().find(is_meant) else { return Conflict::None };
        match own.phase {
            Phase::Probing(_) => {
                (own.phase, own.due_ns) = (Phase::Taken, u64::MAX);
                self.generation += 1;
                Conflict::Lost
            }
            Phase::Taken => Conflict::None,
            Phase::Announcing(_) | Phase::Held => {
                let before = own.defended_ns;
                if before.is_none_or(|before| now_ns.saturating_sub(before) >= DEFEND_NS) {
                    own.defended_ns = Some(now_ns);
                    own.phase = Phase::Announcing(ANNOUNCEMENTS - 1);
                    own.due_ns = now_ns;
                    self.due_ns = self.due_ns.min(now_ns);
                }
                Conflict::Met
            }
        }
    }
}

/// The state of an address of ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AddressState {
    /// It may be used.
    Ours,
    /// It is being probed.
    Tentative,
    /// Another station has it.
    Taken,
}
