//! Round trips of one row, and of all rows as ratios to the base.

use std::time::Duration;

use serde::Serialize;

use crate::CaseRuns;
use crate::explain::Stop;
use millstream_stats::{Histogram, Summary};

use super::end::EndAddress;
use super::job::{PingPlan, Role, RoundTrips, SideJob};
use super::rows::{Half, PathRow};
use super::testbed::{StageError, Testbed};

/// The parameters of round trips.
#[derive(Debug, Clone, Copy)]
pub struct Round {
    /// Bytes of each packet as an Ethernet frame.
    pub frame_bytes: usize,
    /// Round trips.
    pub count: u64,
    /// Probes per second; `None`: one after the other.
    pub rate_pps: Option<f64>,
    /// Packets of load per second.
    pub load_pps: Option<f64>,
    /// SCHED_FIFO at this priority.
    pub fifo: Option<u32>,
    /// A probe that is not back after this long is lost.
    pub patience: Duration,
}

/// Longest wait for a probe where no queue is known to delay it.
pub const PATIENCE: Duration = Duration::from_millis(200);

/// Measures the round trips of a row once. The first one that is too long stops the ring of trace
/// events, if there is one.
///
/// # Errors
/// [`StageError::Refused`] when the row cannot be measured here.
pub fn trip(
    stage: &mut Testbed,
    row: &PathRow,
    how: &Round,
    stop: Option<Stop>,
) -> Result<RoundTrips, StageError> {
    let places = stage.places().clone();
    let job = |half: &Half, index: usize, role| SideJob {
        end: half.at(&places[index], how.frame_bytes),
        role,
        trace: false,
        fifo: how.fifo,
    };
    let warm = (how.count / 10).clamp(10, 1000);
    let active = |to: EndAddress| {
        let Round { count, rate_pps, load_pps, .. } = *how;
        let patience_ns = how.patience.as_nanos() as u64;
        let plan = PingPlan { to, count, rate_pps, load_pps, warm, patience_ns, stop };
        job(&row.active, 0, Role::Ping(plan))
    };
    // Even if all of them are lost.
    let all = (how.count + warm) as f64;
    let patience_s = how.patience.as_secs_f64();
    let longest_s = all * patience_s + how.rate_pps.map_or(0.0, |rate| all / rate);
    let longest = Duration::from_secs_f64(longest_s);
    let [pinger, _] = stage.play(&job(&row.passive, 1, Role::Echo), active, longest)?;
    Ok(pinger.trips.unwrap_or_default())
}

/// A row with all repetitions.
#[derive(Debug, Clone, Serialize)]
pub struct TripLine {
    /// Its name.
    pub name: String,
    /// Packets of load per second beside the probes.
    pub load_pps: f64,
    /// All repetitions together, from when probes were due.
    pub histogram: Histogram,
    /// The same, from when they were sent: the view of a client that waits.
    pub uncorrected: Histogram,
    /// Probes that never came back.
    pub lost: u64,
    /// Packets of load that the link took.
    pub load_sent: u64,
    /// Each round: its number, and its quantiles in nanoseconds.
    pub runs: Vec<(usize, [u64; QUANTILES.len()])>,
    /// CPU time over time of the asking side, the median of all repetitions.
    pub cpu_share: Option<f64>,
    /// The reason why it could not be measured (any more).
    pub refused: Option<String>,
    /// Median over that of the base in the same round.
    pub ratio: Option<Summary>,
}

/// The quantiles that reports show; the last is the maximum.
pub const QUANTILES: [f64; 5] = [0.5, 0.9, 0.99, 0.999, 1.0];

impl TripLine {
    /// Sums up a row: what the rounds gave, and what they gave for the base beside the same load.
    #[must_use]
    pub fn of(
        name: &str,
        load_pps: f64,
        taken: &CaseRuns<RoundTrips>,
        base: Option<&CaseRuns<RoundTrips>>,
    ) -> Self {
        let (mut histogram, mut uncorrected) = (Histogram::default(), Histogram::default());
        for trips in taken.outcomes() {
            histogram.merge(&trips.from_due);
            uncorrected.merge(&trips.from_sent);
        }
        let quantiles = |(round, trips): &(usize, RoundTrips)| {
            (*round, QUANTILES.map(|share| trips.from_due.quantile_ns(share)))
        };
        let median = |trips: &RoundTrips| trips.from_due.quantile_ns(QUANTILES[0]) as f64;
        Self {
            name: name.to_owned(),
            load_pps,
            histogram,
            uncorrected,
            lost: taken.outcomes().map(|trips| trips.lost).sum(),
            load_sent: taken.outcomes().map(|trips| trips.load_sent).sum(),
            runs: taken.runs.iter().map(quantiles).collect(),
            cpu_share: taken.median(|trips| Some(trips.cpu_share)),
            refused: taken.refused.clone(),
            ratio: base.and_then(|base| taken.ratios(base, median, median)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_has_all_trips_and_the_ratios_of_its_medians() {
        let taken = |medians_ns: [u64; 2]| {
            let trips = |ns| {
                let mut trips = RoundTrips { lost: 1, ..RoundTrips::default() };
                trips.from_due.record_many(ns, 10);
                trips
            };
            CaseRuns { runs: (0..).zip(medians_ns.map(trips)).collect(), refused: None }
        };
        let base = taken([10_000, 40_000]);
        let line = TripLine::of("other", 1e5, &taken([5_000, 8_000]), Some(&base));
        let ratio = line.ratio.unwrap();
        assert!((ratio.min - 0.2).abs() < 0.01 && (ratio.max - 0.5).abs() < 0.01, "{ratio:?}");
        assert_eq!((line.histogram.count(), line.lost, line.runs.len()), (20, 2, 2));
        assert!(TripLine::of("alone", 7.0, &base, None).ratio.is_none());
    }
}
