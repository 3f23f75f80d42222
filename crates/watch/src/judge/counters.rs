//! Counters between two readings: which of them grew, and whether that explains what is missing.

use super::cause::LossCause;
use crate::reading::{HopReading, InterfaceReading};
use crate::verdict::{Certainty, Hop};

/// A counter of dropped packets, and how far it grew.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Growth {
    pub cause: LossCause,
    pub hop: Hop,
    /// The interface; empty for a counter of the whole host.
    pub interface: String,
    pub by: u64,
    /// It did not begin anew meanwhile: otherwise `by` is the least.
    pub is_exact: bool,
}

/// Which counters can explain a loss.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// Before the capture, of packets that come in.
    In,
    /// Before the capture, of packets that go out.
    Out,
    /// Behind the capture, of packets that go out.
    Sent,
}

/// The counters of one way over a time.
#[derive(Debug, Default)]
pub(super) struct Counters {
    pub grown: Vec<Growth>,
    /// Every counter that could explain a loss is there, at each moment.
    pub are_complete: bool,
    /// The causes that have a counter.
    counted: Vec<LossCause>,
    /// Packets that our own capture missed.
    pub capture_missed: u64,
    /// The names of the interfaces.
    pub interfaces: Vec<String>,
}

/// Returns how far counters grew over some readings.
pub(super) fn growth(way: Way, readings: &[&HopReading]) -> Counters {
    let mut found = Counters { are_complete: readings.len() > 1, ..Counters::default() };
    for pair in readings.windows(2) {
        let [before, now] = pair else { continue };
        let missed = now.capture_missed.checked_sub(before.capture_missed);
        let missed = missed.unwrap_or(now.capture_missed);
        found.capture_missed = found.capture_missed.saturating_add(missed);
        found.pair(way, before, now);
    }
    if let Some(last) = readings.last() {
        found.interfaces = last.interfaces.iter().map(|one| one.name.clone()).collect();
    }
    found.are_complete &= !found.interfaces.is_empty();
    found.part();
    found
}

/// A counter of an interface: its cause and hop, and its value.
type Counter = (LossCause, Hop, fn(&InterfaceReading) -> Option<u64>);

const IN: [Counter; 3] = [
    (LossCause::Damaged, Hop::Wire, |one| one.damaged),
    (LossCause::CardRing, Hop::Card, |one| one.ring_full),
    (LossCause::Driver, Hop::Card, |one| one.receive_dropped),
];
const OUT: [Counter; 1] = [(LossCause::SendQueue, Hop::SendQueue, |one| one.queue_dropped)];
const SENT: [Counter; 1] = [(LossCause::SendQueue, Hop::SendQueue, |one| one.send_dropped)];

impl Way {
    /// Returns the first and the last place where packets of this way can be lost.
    pub fn range(self) -> (Hop, Hop) {
        match self {
            Self::In => (Hop::Wire, Hop::Backlog),
            Self::Out => (Hop::Stack, Hop::SendQueue),
            Self::Sent => (Hop::Radio, Hop::SendQueue),
        }
    }
}

impl Counters {
    fn pair(&mut self, way: Way, before: &HopReading, now: &HopReading) {
        match way {
            Way::In => {
                let values = before.backlog_dropped.zip(now.backlog_dropped);
                self.add(LossCause::Backlog, Hop::Backlog, "", values);
            }
            Way::Out => {
                let values = before.stack.send_dropped.zip(now.stack.send_dropped);
                self.add(LossCause::Stack, Hop::Stack, "", values);
            }
            Way::Sent => {}
        }
        self.are_complete &= before.interfaces.len() == now.interfaces.len();
        let counters = match way {
            Way::In => &IN[..],
            Way::Out => &OUT,
            Way::Sent => &SENT,
        };
        for interface in &now.interfaces {
            let earlier = before.interfaces.iter().find(|one| one.name == interface.name);
            self.are_complete &= earlier.is_some();
            for (cause, hop, value) in counters {
                let values = earlier.and_then(value).zip(value(interface));
                self.add(*cause, *hop, &interface.name, values);
            }
        }
    }

    /// Takes out of a counter what others count, too.
    fn part(&mut self) {
        let by = |grown: &[Growth], cause, interface: &str| -> u64 {
            let same = |one: &&Growth| one.cause == cause && one.interface == interface;
            total(grown.iter().filter(same))
        };
        for n in 0..self.grown.len() {
            let one = &self.grown[n];
            let others = match one.cause {
                // What the ring or a backlog had no room for, the interface may count as dropped.
                LossCause::Driver => {
                    let ring = by(&self.grown, LossCause::CardRing, &one.interface);
                    ring.saturating_add(by(&self.grown, LossCause::Backlog, ""))
                }
                // What the queue drops could not be sent: by UDP, and perhaps by IP once more.
                LossCause::Stack => {
                    let queues = self.grown.iter().filter(|one| one.cause == LossCause::SendQueue);
                    total(queues).saturating_mul(2)
                }
                _ => 0,
            };
            self.grown[n].by = one.by.saturating_sub(others);
        }
        self.counted = self.grown.iter().map(|one| one.cause).collect();
        self.grown.retain(|one| one.by > 0 || !one.is_exact);
    }

    /// Returns whether there is a counter for a cause.
    pub fn is_counted(&self, cause: LossCause) -> bool {
        self.counted.contains(&cause)
    }

    /// Adds what a counter grew by.
    fn add(&mut self, cause: LossCause, hop: Hop, name: &str, values: Option<(u64, u64)>) {
        let Some((before, now)) = values else {
            self.are_complete = false;
            return;
        };
        // Some have 32 bits: one that begins anew right before it wraps is not to be expected.
        let wrapped = || now.checked_add(1 << 32)?.checked_sub(before).filter(|by| *by < 1 << 20);
        let by = now.checked_sub(before).or_else(wrapped);
        let same = |one: &&mut Growth| one.cause == cause && one.interface == name;
        let growth = match self.grown.iter_mut().find(same) {
            Some(growth) => growth,
            None => {
                let interface = name.to_owned();
                self.grown.push(Growth { cause, hop, interface, by: 0, is_exact: true });
                self.grown.last_mut().expect("it was pushed")
            }
        };
        growth.is_exact &= by.is_some();
        growth.by = growth.by.saturating_add(by.unwrap_or(now));
    }

    /// Returns between which hops so many packets were lost, and how sure that is; `None` if no
    /// counter grew. `is_shared` says which counters may count other packets, too.
    pub fn explain(
        &self,
        way: Way,
        packets: u64,
        is_shared: impl Fn(&Growth) -> bool,
    ) -> Option<(Hop, Hop, Certainty)> {
        let first = self.grown.iter().map(|one| one.hop).min()?;
        let last = self.grown.iter().map(|one| one.hop).max()?;
        let sum = total(self.grown.iter());
        let are_exact = self.grown.iter().all(|one| one.is_exact);
        let is_just = are_exact && sum == packets;
        Some(match &self.grown[..] {
            [one] if is_just && self.capture_missed == 0 && !is_shared(one) => {
                (first, last, Certainty::Sure)
            }
            [_] if sum >= packets || !are_exact => (first, last, Certainty::Perhaps),
            _ if is_just && first == last => (first, last, Certainty::Perhaps),
            _ if is_just => (first, last, Certainty::Between),
            // Some may be lost where nothing counts them.
            _ => (way.range().0, way.range().1, Certainty::Between),
        })
    }
}

/// Returns by how much some counters grew together.
fn total<'a>(grown: impl Iterator<Item = &'a Growth>) -> u64 {
    grown.fold(0, |sum, one| sum.saturating_add(one.by))
}
