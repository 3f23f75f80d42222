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

    /// Sets the counters to those of the streams.
    pub fn follow_counters(&self, counters: &RxCounters) {
        follow(&self.packets, counters.packets);
        follow(&self.overruns, counters.overruns);
        follow(&self.duplicates, counters.duplicates);
        let foreign = counters.foreign + counters.malformed + counters.misaddressed;
        follow(&self.hostile, foreign + counters.unexpected + counters.too_long);
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

    /// Sets the counters to those of the stream.
    pub fn follow_counters(&self, counters: &TxCounters) {
        follow(&self.packets, counters.packets);
        follow(&self.underflows, counters.underflows);
        follow(&self.lates, counters.lates);
        follow(&self.burst_acks, counters.burst_acks);
        follow(&self.stalls, counters.stalls);
        follow(&self.hostile, counters.foreign + counters.malformed + counters.unexpected);
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
