//! All cases, measured beside predicted.

use serde::Serialize;

use super::{Bound, PortCase, PortFigures, PortTopology};
use crate::packets::job::RoundTrips;
use millstream_stats::{Histogram, Summary};

/// The predicted quantiles: median and tail.
const PREDICTED: [f64; 2] = [0.5, 0.99];

/// The cases of one comparison.
#[derive(Debug, Clone, Default, Serialize)]
pub struct PortTable {
    /// In the order of their first result.
    pub lines: Vec<CaseResults>,
}

/// A case with all repetitions.
#[derive(Debug, Clone, Serialize)]
pub struct CaseResults {
    /// The case.
    pub case: PortCase,
    /// The longest wait for other frames, by their times.
    pub bound: Bound,
    /// All repetitions together, from when probes were due; lost probes are at the end.
    pub histogram: Histogram,
    /// Probes that never came back.
    pub lost: u64,
    /// Share of the time for which the bulk's port was busy, of the median repetition.
    pub busy: f64,
    /// Packets that its queue dropped.
    pub drops: u64,
    /// The median beside its prediction; `None` for separate ports, the base of the comparison, and
    /// where no probe came back.
    pub median: Option<Against>,
    /// The 99th percentile likewise.
    pub tail: Option<Against>,
    #[serde(skip)]
    runs: Vec<Run>,
}

/// Measured beside predicted.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Against {
    /// The quantile of the round trips over separate ports in the same repetition, convolved with
    /// the waits by the frames' times, nanoseconds; of the median repetition.
    pub predicted_ns: f64,
    /// Measured over predicted, in each repetition.
    pub ratio: Summary,
}

#[derive(Debug, Clone)]
struct Run {
    turn: usize,
    trips: Histogram,
    lost: u64,
    busy: f64,
}

/// The quantile of the returned round trips, nanoseconds; `None` where no probe came back.
#[must_use]
pub fn came_ns(histogram: &Histogram, lost: u64, quantile: f64) -> Option<u64> {
    // A loss is longer than any returned trip, so all losses are at the end.
    let (all, came) = (histogram.count(), histogram.count().saturating_sub(lost));
    (came > 0).then(|| histogram.quantile_ns(quantile * came as f64 / all as f64))
}

impl PortTable {
    /// Adds a repetition of a case.
    pub fn add(&mut self, case: &PortCase, turn: usize, found: &PortFigures) {
        let at = self.lines.iter().position(|line| line.case == *case).unwrap_or_else(|| {
            self.lines.push(CaseResults::new(case));
            self.lines.len() - 1
        });
        let line = &mut self.lines[at];
        let RoundTrips { from_due, lost, .. } = &found.trips;
        line.histogram.merge(from_due);
        line.lost += lost;
        line.drops += u64::from(found.queued.drops);
        line.runs.push(Run { turn, trips: from_due.clone(), lost: *lost, busy: found.busy });
    }

    /// Computes the predictions from separate ports of the same rate; to be called after the
    /// measurements.
    pub fn sum_up(&mut self) {
        let is_base = |line: &&CaseResults| line.case.topology == PortTopology::Separate;
        let bases: Vec<_> = self.lines.iter().filter(is_base).cloned().collect();
        for line in &mut self.lines {
            let busy: Vec<_> = line.runs.iter().map(|run| run.busy).collect();
            line.busy = Summary::of(&busy).map_or(0.0, |busy| busy.median);
            if line.case.topology == PortTopology::Separate {
                continue;
            }
            let base = bases.iter().find(|base| base.case.rate_bps == line.case.rate_bps);
            let [median, tail] = PREDICTED.map(|quantile| line.against(base?, quantile));
            (line.median, line.tail) = (median, tail);
        }
    }

    /// The longest returned round trip over separate ports of a rate, nanoseconds; `None` without
    /// one.
    #[must_use]
    pub fn longest_apart_ns(&self, rate_bps: f64) -> Option<u64> {
        let apart = |line: &&CaseResults| {
            line.case.topology == PortTopology::Separate && line.case.rate_bps == rate_bps
        };
        self.lines.iter().find(apart)?.longest_ns()
    }
}

impl CaseResults {
    fn new(case: &PortCase) -> Self {
        Self {
            case: *case,
            bound: case.bound(),
            histogram: Histogram::default(),
            lost: 0,
            busy: 0.0,
            drops: 0,
            median: None,
            tail: None,
            runs: Vec::new(),
        }
    }

    /// The longest returned round trip, nanoseconds; `None` without one.
    #[must_use]
    pub fn longest_ns(&self) -> Option<u64> {
        came_ns(&self.histogram, self.lost, 1.0)
    }

    /// Compares a quantile with its prediction from `base` in the same repetition.
    fn against(&self, base: &Self, quantile: f64) -> Option<Against> {
        let pair = |run: &Run| {
            let base = base.runs.iter().find(|base| base.turn == run.turn)?;
            let told_ns = self.case.waits(run.busy).trip_ns(&base.trips, base.lost, quantile)?;
            Some((came_ns(&run.trips, run.lost, quantile)? as f64, told_ns))
        };
        let pairs: Vec<_> = self.runs.iter().filter_map(pair).collect();
        let ratios: Vec<_> = pairs.iter().map(|(seen_ns, told_ns)| seen_ns / told_ns).collect();
        let told: Vec<_> = pairs.iter().map(|(_, told_ns)| *told_ns).collect();
        let predicted_ns = Summary::of(&told)?.median;
        Some(Against { predicted_ns, ratio: Summary::of(&ratios)? })
    }
}

#[cfg(test)]
mod tests {
    use super::super::Bulk;
    use super::*;

    fn found(ns: u64, lost: u64, busy: f64) -> PortFigures {
        let mut trips = RoundTrips::default();
        trips.from_due.record_many(ns, 100);
        trips.from_due.record_many(200_000_000, lost);
        trips.lost = lost;
        PortFigures { trips, queued: Default::default(), offered: 0, busy }
    }

    #[test]
    fn the_tail_is_that_of_separate_ports_and_the_wait() {
        let bulk = Bulk { frame_bytes: 1514, share: 1.1, burst: 1 };
        let case = |topology| PortCase { topology, rate_bps: 1e8, bulk, queue: 50 };
        let mut table = PortTable::default();
        for (turn, base_ns, full_ns) in [(0, 100_000, 6_300_000), (1, 200_000, 12_600_000)] {
            table.add(&case(PortTopology::Separate), turn, &found(base_ns, 0, 0.9));
            table.add(&case(PortTopology::Bulk), turn, &found(full_ns, 30, 1.0));
        }
        table.sum_up();
        let [apart, full] = &table.lines[..] else { panic!("two lines") };
        assert!(apart.median.is_none() && apart.tail.is_none(), "it is what is compared with");
        let Against { predicted_ns, ratio } = full.tail.unwrap();
        let wait_ns = full.case.waits(1.0).quantile_ns(0.99);
        assert!((predicted_ns - (wait_ns + 150_000.0)).abs() < 3000.0, "{full:?}");
        assert!((ratio.min - 1.01).abs() < 0.02 && (ratio.max - 2.0).abs() < 0.03, "{ratio:?}");
        let median_ns = full.median.unwrap().predicted_ns;
        assert!((predicted_ns - median_ns - 0.49 * full.case.frame_ns()).abs() < 100.0);
        assert!(full.longest_ns().unwrap() < 13_000_000, "what was lost is no round trip");
        assert_eq!((full.lost, came_ns(&Histogram::default(), 0, 0.5)), (60, None));
    }

    #[test]
    fn nothing_is_compared_with_what_never_came_back() {
        let bulk = Bulk { frame_bytes: 1514, share: 0.8, burst: 1 };
        let case = |topology| PortCase { topology, rate_bps: 1e8, bulk, queue: 50 };
        let mut lost = found(0, 30, 0.8);
        lost.trips.from_due = Histogram::default();
        lost.trips.from_due.record_many(200_000_000, 30);
        for (apart, beside) in [(&lost, &found(100, 0, 0.8)), (&found(100, 0, 0.8), &lost)] {
            let mut table = PortTable::default();
            table.add(&case(PortTopology::Separate), 0, apart);
            table.add(&case(PortTopology::Bulk), 0, beside);
            table.sum_up();
            assert!(table.lines[1].median.is_none() && table.lines[1].tail.is_none());
        }
    }
}
