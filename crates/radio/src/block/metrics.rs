//! The metrics that a source or sink publishes about its streams.

use millstream_flow::{Counter, Gauge, Metric};

use crate::{Cause, Ledger, RxCounters, TxCause, TxCounters, TxLedger};

/// The published counters; the ledger's causes in their order there.
#[derive(Default)]
pub(super) struct Metrics {
    expected: Counter,
    delivered: Counter,
    after_end: Counter,
    lost: [Counter; Cause::ALL.len()],
    packets: Counter,
    pub gaps: Counter,
    pub reopened: Counter,
    overruns: Counter,
    duplicates: Counter,
    hostile: Counter,
}

/// Sets `counter` to a total that is counted elsewhere.
fn follow(counter: &Counter, total: u64) {
    // A loss can be moved to another cause; its first counter then decreases.
    counter.add(total.wrapping_sub(counter.get()));
}

impl Metrics {
    pub fn follow_ledger(&self, ledger: &Ledger) {
        follow(&self.expected, ledger.expected);
        follow(&self.delivered, ledger.delivered);
        follow(&self.after_end, ledger.after_end);
        for (counter, (_, lost)) in self.lost.iter().zip(ledger.losses()) {
            follow(counter, lost);
        }
    }

    /// Sets the counters to the sums over `streams`.
    pub fn follow_counters<'a>(&self, streams: impl Iterator<Item = &'a RxCounters>) {
        let (mut packets, mut overruns, mut duplicates, mut hostile) = (0, 0, 0, 0);
        for counters in streams {
            packets += counters.packets;
            overruns += counters.overruns;
            duplicates += counters.duplicates;
            hostile += counters.foreign + counters.malformed + counters.misaddressed;
            hostile += counters.unexpected + counters.too_long;
        }
        follow(&self.packets, packets);
        follow(&self.overruns, overruns);
        follow(&self.duplicates, duplicates);
        follow(&self.hostile, hostile);
    }

    pub fn list(&self) -> Vec<(&'static str, Metric)> {
        let mut list = vec![
            ("expected", Metric::from(&self.expected)),
            ("delivered", Metric::from(&self.delivered)),
            ("after_end", Metric::from(&self.after_end)),
            ("packets", Metric::from(&self.packets)),
            ("gaps", Metric::from(&self.gaps)),
            ("reopenings", Metric::from(&self.reopened)),
            ("overruns", Metric::from(&self.overruns)),
            ("duplicates", Metric::from(&self.duplicates)),
            ("hostile", Metric::from(&self.hostile)),
        ];
        let causes = Cause::ALL.iter().zip(&self.lost);
        list.extend(causes.map(|(cause, counter)| (cause.name(), Metric::from(counter))));
        list
    }
}

/// The published counters of a sink; the ledger's causes in their order there.
#[derive(Default)]
pub(super) struct TransmitMetrics {
    accepted: Counter,
    transmitted: Counter,
    in_flight: Counter,
    unknown: Counter,
    lost: [Counter; TxCause::ALL.len()],
    packets: Counter,
    underflows: Counter,
    lates: Counter,
    burst_acks: Counter,
    stalls: Counter,
    hostile: Counter,
    pub transmit_delay_s: Gauge,
}

impl TransmitMetrics {
    pub fn follow_ledger(&self, ledger: &TxLedger) {
        follow(&self.accepted, ledger.accepted);
        follow(&self.transmitted, ledger.transmitted);
        follow(&self.in_flight, ledger.in_flight);
        follow(&self.unknown, ledger.unknown.samples);
        for (counter, (_, lost)) in self.lost.iter().zip(ledger.losses()) {
            follow(counter, lost);
        }
    }

    /// Sets the counters to the sums over `streams`.
    pub fn follow_counters<'a>(&self, streams: impl Iterator<Item = &'a TxCounters>) {
        let mut sum = TxCounters::default();
        for counters in streams {
            sum.packets += counters.packets;
            sum.underflows += counters.underflows;
            sum.lates += counters.lates;
            sum.burst_acks += counters.burst_acks;
            sum.stalls += counters.stalls;
            sum.foreign += counters.foreign + counters.malformed + counters.unexpected;
        }
        follow(&self.packets, sum.packets);
        follow(&self.underflows, sum.underflows);
        follow(&self.lates, sum.lates);
        follow(&self.burst_acks, sum.burst_acks);
        follow(&self.stalls, sum.stalls);
        follow(&self.hostile, sum.foreign);
    }

    pub fn list(&self) -> Vec<(&'static str, Metric)> {
        let mut list = vec![
            ("accepted", Metric::from(&self.accepted)),
            ("transmitted", Metric::from(&self.transmitted)),
            ("in_flight", Metric::from(&self.in_flight)),
            ("unknown", Metric::from(&self.unknown)),
            ("packets", Metric::from(&self.packets)),
            ("underflows", Metric::from(&self.underflows)),
            ("lates", Metric::from(&self.lates)),
            ("burst_acks", Metric::from(&self.burst_acks)),
            ("stalls", Metric::from(&self.stalls)),
            ("hostile", Metric::from(&self.hostile)),
            ("transmit_delay_s", Metric::from(&self.transmit_delay_s)),
        ];
        let causes = TxCause::ALL.iter().zip(&self.lost);
        list.extend(causes.map(|(cause, counter)| (cause.name(), Metric::from(counter))));
        list
    }
}

/// Adds the counters of one stream to the sum of several; a field more is an error here.
pub(super) fn add(sum: &mut RxCounters, counters: &RxCounters) {
    let RxCounters {
        packets,
        foreign,
        malformed,
        too_long,
        misaddressed,
        duplicates,
        reordered,
        late,
        unmeasured_gaps,
        clock_jumps,
        stray,
        unexpected,
        reports,
        reports_put_off,
        overruns,
        stalls,
    } = *counters;
    sum.packets += packets;
    sum.foreign += foreign;
    sum.malformed += malformed;
    sum.too_long += too_long;
    sum.misaddressed += misaddressed;
    sum.duplicates += duplicates;
    sum.reordered += reordered;
    sum.late += late;
    sum.unmeasured_gaps += unmeasured_gaps;
    sum.clock_jumps += clock_jumps;
    sum.stray += stray;
    sum.unexpected += unexpected;
    sum.reports += reports;
    sum.reports_put_off += reports_put_off;
    sum.overruns += overruns;
    sum.stalls += stalls;
}
