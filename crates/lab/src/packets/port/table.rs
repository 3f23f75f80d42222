//! All cases, measured beside predicted.

use serde::Serialize;

use super::{Bound, Case, Through, Topology};
use crate::packets::job::Trips;
use crate::{Histogram, Summary};

/// The quantile that is predicted.
pub const TAIL: f64 = 0.99;

/// The cases of one comparison.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Table {
    /// In the order of their first result.
    pub lines: Vec<Line>,
}

/// A case with all repetitions.
#[derive(Debug, Clone, Serialize)]
pub struct Line {
    /// What was measured.
    pub case: Case,
    /// The longest wait for other frames, by their times.
    pub bound: Bound,
    /// All repetitions together, from when probes were due; those that were lost are at the end.
    pub histogram: Histogram,
    /// Probes that never came back.
    pub lost: u64,
    /// Share of the time for which the port with the bulk was busy, the middle repetition's.
    pub busy: f64,
    /// Packets that its queue dropped.
    pub drops: u64,
    /// What the 99th percentile should be: that of separate ports in the same repetition, and the
    /// wait by the frames' times, nanoseconds; the middle repetition's.
    pub tail_predicted_ns: f64,
    /// Measured over predicted, in each repetition.
    pub ratio: Option<Summary>,
    #[serde(skip)]
    runs: Vec<Run>,
}

#[derive(Debug, Clone, Copy)]
struct Run {
    turn: usize,
    tail_ns: f64,
    busy: f64,
}

/// The quantile of the round trips that came back, nanoseconds.
#[must_use]
pub fn came_ns(histogram: &Histogram, lost: u64, quantile: f64) -> u64 {
    // A loss is longer than what comes back, so all of them are at the end.
    let (all, came) = (histogram.count(), histogram.count().saturating_sub(lost));
    if came == 0 {
        return 0;
    }
    histogram.quantile_ns(quantile * came as f64 / all as f64)
}

impl Table {
    /// Adds a repetition of a case.
    pub fn add(&mut self, case: &Case, turn: usize, found: &Through) {
        let at = self.lines.iter().position(|line| line.case == *case).unwrap_or_else(|| {
            self.lines.push(Line::new(case));
            self.lines.len() - 1
        });
        let line = &mut self.lines[at];
        let Trips { from_due, lost, .. } = &found.trips;
        line.histogram.merge(from_due);
        line.lost += lost;
        line.drops += u64::from(found.queued.drops);
        let tail_ns = came_ns(from_due, *lost, TAIL) as f64;
        line.runs.push(Run { turn, tail_ns, busy: found.busy });
    }

    /// Works out what was to be expected, from separate ports of the same rate; call it when all is
    /// measured.
    pub fn sum_up(&mut self) {
        let is_base = |line: &&Line| line.case.topology == Topology::Separate;
        let bases: Vec<_> = self.lines.iter().filter(is_base).cloned().collect();
        for line in &mut self.lines {
            let base = bases.iter().find(|base| base.case.rate_bps == line.case.rate_bps);
            let pair = |run: &Run| {
                let base = base?.runs.iter().find(|base| base.turn == run.turn)?;
                Some((run.tail_ns, base.tail_ns + line.case.wait_ns(run.busy, TAIL)))
            };
            let pairs: Vec<_> = line.runs.iter().filter_map(pair).collect();
            let ratios: Vec<_> = pairs.iter().map(|(seen, told)| seen / told).collect();
            let told: Vec<_> = pairs.iter().map(|(_, told)| *told).collect();
            let busy: Vec<_> = line.runs.iter().map(|run| run.busy).collect();
            line.ratio = Summary::of(&ratios);
            line.tail_predicted_ns = Summary::of(&told).map_or(0.0, |told| told.median);
            line.busy = Summary::of(&busy).map_or(0.0, |busy| busy.median);
        }
    }

    /// The longest round trip that came back over separate ports of a rate, nanoseconds.
    #[must_use]
    pub fn longest_apart_ns(&self, rate_bps: f64) -> u64 {
        let apart = |line: &&Line| {
            line.case.topology == Topology::Separate && line.case.rate_bps == rate_bps
        };
        self.lines.iter().find(apart).map_or(0, |line| line.longest_ns())
    }
}

impl Line {
    fn new(case: &Case) -> Self {
        Self {
            case: *case,
            bound: case.bound(),
            histogram: Histogram::default(),
            lost: 0,
            busy: 0.0,
            drops: 0,
            tail_predicted_ns: 0.0,
            ratio: None,
            runs: Vec::new(),
        }
    }

    /// The longest round trip that came back, nanoseconds.
    #[must_use]
    pub fn longest_ns(&self) -> u64 {
        came_ns(&self.histogram, self.lost, 1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Bulk;
    use super::*;

    fn found(ns: u64, lost: u64, busy: f64) -> Through {
        let mut trips = Trips::default();
        trips.from_due.record_many(ns, 100);
        trips.from_due.record_many(200_000_000, lost);
        trips.lost = lost;
        Through { trips, queued: Default::default(), offered: 0, busy }
    }

    #[test]
    fn the_tail_is_that_of_separate_ports_and_the_wait() {
        let bulk = Bulk { frame_bytes: 1514, share: 1.1, burst: 1 };
        let case = |topology| Case { topology, rate_bps: 1e8, bulk, queue: 50 };
        let mut table = Table::default();
        for (turn, base_ns, full_ns) in [(0, 100_000, 6_300_000), (1, 200_000, 12_600_000)] {
            table.add(&case(Topology::Separate), turn, &found(base_ns, 0, 0.9));
            table.add(&case(Topology::Bulk), turn, &found(full_ns, 30, 1.0));
        }
        table.sum_up();
        let [apart, full] = &table.lines[..] else { panic!("two lines") };
        assert!((apart.ratio.unwrap().median - 1.0).abs() < 1e-9);
        let wait_ns = full.case.wait_ns(1.0, TAIL);
        assert!((full.tail_predicted_ns - (wait_ns + 150_000.0)).abs() < 3000.0, "{full:?}");
        let ratio = full.ratio.unwrap();
        assert!((ratio.min - 1.01).abs() < 0.02 && (ratio.max - 2.0).abs() < 0.03, "{ratio:?}");
        assert!(full.longest_ns() < 13_000_000, "what was lost is no round trip");
        assert_eq!((full.lost, came_ns(&Histogram::default(), 0, 0.5)), (60, 0));
    }
}
