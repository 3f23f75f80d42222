//! The rounds of a case together, measured beside predicted.

use serde::Serialize;

use super::{Bound, PortCase, PortFigures, PortTopology};
use crate::CaseRuns;
use crate::packets::job::RoundTrips;
use millstream_stats::{Histogram, Summary};

/// The predicted quantiles: median and tail.
const PREDICTED: [f64; 2] = [0.5, 0.99];

/// A case with all rounds.
#[derive(Debug, Clone, Serialize)]
pub struct CaseResults {
    /// The case.
    pub case: PortCase,
    /// The longest wait for other frames, by their times.
    pub bound: Bound,
    /// All rounds together, from when probes were due; lost probes are at the end.
    pub histogram: Histogram,
    /// Probes that never came back.
    pub lost: u64,
    /// Share of the time for which the bulk's port was busy, of the median round.
    pub busy: f64,
    /// Packets that its queue dropped.
    pub drops: u64,
    /// The median beside its prediction; `None` for separate ports, the base of the comparison, and
    /// where no probe came back.
    pub median: Option<Against>,
    /// The 99th percentile likewise.
    pub tail: Option<Against>,
}

/// Measured beside predicted.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Against {
    /// The quantile of the round trips over separate ports in the same round, convolved with
    /// the waits by the frames' times, nanoseconds; of the median round.
    pub predicted_ns: f64,
    /// Measured over predicted, in each round.
    pub ratio: Summary,
}

/// The quantile of the returned round trips, nanoseconds; `None` where no probe came back.
#[must_use]
pub fn came_ns(histogram: &Histogram, lost: u64, quantile: f64) -> Option<u64> {
    // A loss is longer than any returned trip, so all losses are at the end.
    let (all, came) = (histogram.count(), histogram.count().saturating_sub(lost));
    (came > 0).then(|| histogram.quantile_ns(quantile * came as f64 / all as f64))
}

impl CaseResults {
    /// Sums up what the rounds gave for a case, and predicts it from what they gave for separate
    /// ports of the same rate.
    #[must_use]
    pub fn of(
        case: &PortCase,
        taken: &CaseRuns<PortFigures>,
        separate: Option<&CaseRuns<PortFigures>>,
    ) -> Self {
        let mut histogram = Histogram::default();
        taken.outcomes().for_each(|found| histogram.merge(&found.trips.from_due));
        let base = separate.filter(|_| case.topology != PortTopology::Separate);
        let [median, tail] = PREDICTED.map(|quantile| against(case, taken, base?, quantile));
        Self {
            case: *case,
            bound: case.bound(),
            histogram,
            lost: taken.outcomes().map(|found| found.trips.lost).sum(),
            busy: taken.median(|found| Some(found.busy)).unwrap_or_default(),
            drops: taken.outcomes().map(|found| u64::from(found.queued.drops)).sum(),
            median,
            tail,
        }
    }

    /// The longest returned round trip, nanoseconds; `None` without one.
    #[must_use]
    pub fn longest_ns(&self) -> Option<u64> {
        came_ns(&self.histogram, self.lost, 1.0)
    }
}

/// Compares a quantile with its prediction from `base` in the same round.
fn against(
    case: &PortCase,
    taken: &CaseRuns<PortFigures>,
    base: &CaseRuns<PortFigures>,
    quantile: f64,
) -> Option<Against> {
    let pair = |(round, found): &(usize, PortFigures)| {
        let (_, base) = base.runs.iter().find(|(other, _)| other == round)?;
        let RoundTrips { from_due, lost, .. } = &base.trips;
        let told_ns = case.waits(found.busy).trip_ns(from_due, *lost, quantile)?;
        let seen_ns = came_ns(&found.trips.from_due, found.trips.lost, quantile)?;
        Some((seen_ns as f64, told_ns))
    };
    let pairs: Vec<_> = taken.runs.iter().filter_map(pair).collect();
    let ratios: Vec<_> = pairs.iter().map(|(seen_ns, told_ns)| seen_ns / told_ns).collect();
    let told: Vec<_> = pairs.iter().map(|(_, told_ns)| *told_ns).collect();
    let predicted_ns = Summary::of(&told)?.median;
    Some(Against { predicted_ns, ratio: Summary::of(&ratios)? })
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

    fn taken<const N: usize>(found: [PortFigures; N]) -> CaseRuns<PortFigures> {
        CaseRuns { runs: (0..).zip(found).collect(), refused: None }
    }

    #[test]
    fn the_tail_is_that_of_separate_ports_and_the_wait() {
        let bulk = Bulk { frame_bytes: 1514, share: 1.1, burst: 1 };
        let case = |topology| PortCase { topology, rate_bps: 1e8, bulk, queue: 50 };
        let base = taken([found(100_000, 0, 0.9), found(200_000, 0, 0.9)]);
        let behind = taken([found(6_300_000, 30, 1.0), found(12_600_000, 30, 1.0)]);
        let apart = CaseResults::of(&case(PortTopology::Separate), &base, Some(&base));
        let full = CaseResults::of(&case(PortTopology::Bulk), &behind, Some(&base));
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
            let [apart, beside] = [apart, beside].map(|found| taken([found.clone()]));
            let line = CaseResults::of(&case(PortTopology::Bulk), &beside, Some(&apart));
            assert!(line.median.is_none() && line.tail.is_none());
        }
    }
}
