//! The readings of the last seconds, and the packets that are missing between them.

use std::collections::VecDeque;
use std::net::SocketAddrV4;

use super::cause::LossCause;
use super::counters::{Counters, Growth, Way, growth};
use super::drops::Drops;
use super::{GRACE_NS, LAG_NS, SLACK_NS};
use crate::reading::{HopReading, SocketReading};

/// The most readings and missing packets that are kept.
const READINGS_MAX: usize = 1024;
const SPANS_MAX: usize = 1 << 14;
/// For how long they are kept, nanoseconds.
const KEPT_NS: u64 = 12_000_000_000;
/// Losses that go on for longer are not parted from each other by counters.
const WINDOW_MAX_NS: u64 = 8_000_000_000;

/// Packets that are missing, and that no dropped packet explains.
#[derive(Debug, Clone)]
pub(super) struct Span {
    /// The number of its gap.
    pub gap: u64,
    pub way: Way,
    pub since_ns: u64,
    pub at_ns: u64,
    pub packets: u64,
    /// The counter that has counted just these packets.
    pub counted: Option<(LossCause, String)>,
}

/// What was read, and what was missing meanwhile.
#[derive(Debug, Default)]
pub(super) struct History {
    readings: VecDeque<HopReading>,
    spans: VecDeque<Span>,
    /// Counters that have grown where nothing was missing.
    shared: Vec<Growth>,
    /// Until when counters were compared with what was missing.
    compared_ns: u64,
}

/// The counters around a loss.
pub(super) struct Window<'a> {
    pub readings: Vec<&'a HopReading>,
    pub counters: Counters,
    /// All packets of this way that are missing in it, unless dropped packets explain them.
    pub packets: u64,
    /// Slow counters have counted, too.
    pub is_late: bool,
    /// Slow counters may count here what was lost before it.
    pub is_behind_others: bool,
}

/// Why there is no window around a loss.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NoWindow {
    /// The reading behind it, or packets of that time, may come yet.
    Yet,
    /// There is no reading before it or behind it, or losses go on all the time.
    Ever,
}

impl History {
    pub fn take(&mut self, reading: HopReading) {
        if self.readings.len() == READINGS_MAX {
            self.readings.pop_front();
        }
        let at = self.readings.partition_point(|one| one.at_ns <= reading.at_ns);
        self.readings.insert(at, reading);
    }

    pub fn miss(&mut self, span: Span) {
        if self.spans.len() == SPANS_MAX {
            self.spans.pop_front();
        }
        let at = self.spans.partition_point(|one| one.at_ns <= span.at_ns);
        self.spans.insert(at, span);
    }

    /// Notes that a counter has counted just the packets of a gap.
    pub fn count(&mut self, gap: u64, counter: (LossCause, String)) {
        if let Some(span) = self.spans.iter_mut().rev().find(|span| span.gap == gap) {
            span.counted = Some(counter);
        }
    }

    /// Returns the newest reading.
    pub fn last(&self) -> Option<&HopReading> {
        self.readings.back()
    }

    /// Returns the readings from the last one before a time to the first one behind another.
    pub fn around(&self, from_ns: u64, until_ns: u64) -> Vec<&HopReading> {
        let first = self.readings.partition_point(|one| one.at_ns <= from_ns).saturating_sub(1);
        let behind = self.readings.partition_point(|one| one.at_ns < until_ns);
        // Readings of one moment, as a recording may have, are before and behind it.
        let end = (behind + 1).max(first + 1).min(self.readings.len());
        self.readings.range(first..end).collect()
    }

    /// Returns the counters around a loss, with all else that is missing meanwhile, and what they
    /// count up to `lag_ns` late.
    pub fn window(
        &self,
        span: &Span,
        lag_ns: u64,
        drops: &Drops,
        now_ns: u64,
    ) -> Result<Window<'_>, NoWindow> {
        let (mut since_ns, mut at_ns) = (span.since_ns, span.at_ns.saturating_add(lag_ns));
        loop {
            let behind =
                self.readings.partition_point(|one| one.at_ns < at_ns.saturating_add(SLACK_NS));
            let Some(to) = self.readings.get(behind) else {
                let is_late = now_ns >= at_ns.saturating_add(1_000_000_000);
                return Err(if is_late { NoWindow::Ever } else { NoWindow::Yet });
            };
            let before =
                self.readings.partition_point(|one| one.at_ns.saturating_add(SLACK_NS) <= since_ns);
            // What waited in a queue when the readings began is counted in part.
            let is_begun = span.way == Way::Out && behind > 0;
            let before = if is_begun { before.max(1) } else { before };
            let Some(from) = before.checked_sub(1).map(|from| &self.readings[from]) else {
                return Err(NoWindow::Ever);
            };
            if now_ns < to.at_ns.saturating_add(GRACE_NS + SLACK_NS) {
                return Err(NoWindow::Yet);
            }
            if to.at_ns - from.at_ns
                > WINDOW_MAX_NS.max((span.at_ns - span.since_ns).saturating_mul(2))
            {
                return Err(NoWindow::Ever);
            }
            let (earliest, latest) =
                (from.at_ns.saturating_sub(SLACK_NS), to.at_ns.saturating_add(SLACK_NS));
            let first = self.spans.partition_point(|one| one.at_ns < earliest);
            let within = self.spans.range(first..).filter(|one| one.since_ns <= latest);
            let within = within.filter(|one| one.way == span.way);
            let (mut packets, mut grows, mut counted) = (0, false, Vec::new());
            for one in within {
                match &one.counted {
                    Some(counter) => counted.push((counter, one.packets)),
                    None => packets += one.packets,
                }
                if one.since_ns < since_ns || one.at_ns > at_ns {
                    grows = true;
                    (since_ns, at_ns) = (since_ns.min(one.since_ns), at_ns.max(one.at_ns));
                }
            }
            if grows {
                continue;
            }
            let early = earliest.saturating_sub(LAG_NS);
            let is_behind_others = self
                .spans
                .range(..first)
                .rev()
                .take_while(|one| one.at_ns >= early)
                .any(|one| one.way == span.way && one.counted.is_none());
            let readings: Vec<_> = self.readings.range(before - 1..=behind).collect();
            let mut counters = growth(span.way, &readings);
            for one in counters.grown.iter_mut().filter(|one| one.is_exact) {
                let same = |counter: &(LossCause, String)| {
                    counter.0 == one.cause && counter.1 == one.interface
                };
                let of = counted.iter().filter(|(counter, _)| same(counter));
                let known: u64 = of.map(|(_, packets)| packets).sum();
                let named = drops.at_hop(one.hop, earliest, latest);
                one.by = one.by.saturating_sub(named).saturating_sub(known);
            }
            counters.grown.retain(|one| one.by > 0 || !one.is_exact);
            let is_late = lag_ns >= LAG_NS;
            return Ok(Window { readings, counters, packets, is_late, is_behind_others });
        }
    }

    /// Returns whether a counter counts packets of others, too.
    pub fn is_shared(&self, counter: &Growth) -> bool {
        let same = |one: &Growth| one.cause == counter.cause && one.interface == counter.interface;
        self.shared.iter().any(same)
    }

    /// Finds counters that grow although nothing is missing, once all that is missing is known.
    pub fn compare(&mut self, drops: &Drops, now_ns: u64) {
        let settled = now_ns.saturating_sub(LAG_NS + 2 * GRACE_NS);
        let first = self.readings.partition_point(|one| one.at_ns < self.compared_ns);
        let until = self.readings.partition_point(|one| one.at_ns < settled);
        for n in first..until.saturating_sub(1) {
            let pair = [&self.readings[n], &self.readings[n + 1]];
            let earliest = pair[0].at_ns.saturating_sub(SLACK_NS);
            let latest = pair[1].at_ns.saturating_add(SLACK_NS);
            for way in [Way::In, Way::Out, Way::Sent] {
                let near = self.spans.partition_point(|one| one.at_ns < earliest);
                let mut spans = self.spans.range(near..).filter(|one| one.way == way);
                if spans.any(|one| one.since_ns <= latest) {
                    continue;
                }
                for counter in growth(way, &pair).grown {
                    let named = drops.at_hop(counter.hop, earliest, latest);
                    if counter.is_exact && counter.by > named && !self.is_shared(&counter) {
                        self.shared.push(counter);
                    }
                }
            }
        }
        if let Some(last) = until.checked_sub(1).and_then(|last| self.readings.get(last)) {
            self.compared_ns = self.compared_ns.max(last.at_ns);
        }
    }

    /// Forgets what is old.
    pub fn prune(&mut self, now_ns: u64) {
        let old = now_ns.saturating_sub(KEPT_NS);
        while self.readings.front().is_some_and(|one| one.at_ns < old) {
            self.readings.pop_front();
        }
        while self.spans.front().is_some_and(|one| one.at_ns < old) {
            self.spans.pop_front();
        }
    }

    /// Returns the newest reading of the socket at one end of a flow that is not behind a time.
    pub fn socket(
        &self,
        here: SocketAddrV4,
        there: SocketAddrV4,
        until_ns: u64,
    ) -> Option<&SocketReading> {
        let behind = self.readings.partition_point(|one| one.at_ns <= until_ns);
        let of = |one: &SocketReading| one.is_of(here, there);
        let earlier = self.readings.range(..behind).rev();
        let later = self.readings.range(behind..);
        earlier.chain(later).find_map(|reading| reading.sockets.iter().find(|one| of(one)))
    }

    /// Returns the readings behind a time until another one, in their order.
    pub fn between(&self, from_ns: u64, until_ns: u64) -> impl Iterator<Item = &HopReading> {
        let first = self.readings.partition_point(|one| one.at_ns <= from_ns);
        self.readings.range(first..).take_while(move |one| one.at_ns <= until_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readings_of_one_moment_are_around_it() {
        let mut history = History::default();
        assert_eq!(history.around(5, 5).len(), 0);
        for count in 1..5 {
            history.take(HopReading { at_ns: 5, ..HopReading::default() });
            for (from_ns, until_ns) in [(5, 5), (6, 5), (4, 4), (6, 6), (0, 9)] {
                let around = history.around(from_ns, until_ns).len();
                assert!((1..=count).contains(&around), "{count} at {from_ns} to {until_ns}");
            }
        }
    }
}
