//! Round trips of one row, and of all rows as ratios to the base.

use std::time::Duration;

use serde::Serialize;

use crate::explain::Stop;
use millstream_stats::{Histogram, Summary};

use super::end::EndAddress;
use super::job::{PingPlan, Role, RoundTrips, SideJob};
use super::rows::{BASE, Half, PathRow};
use super::table::ratios;
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

/// The rows of one comparison.
#[derive(Debug, Clone, Default, Serialize)]
pub struct TripTable {
    /// Rows in the order of their first result.
    pub lines: Vec<TripLine>,
}

/// A row with all repetitions.
#[derive(Debug, Clone, Default, Serialize)]
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
    /// Repetition and its quantiles, nanoseconds.
    pub runs: Vec<(usize, [u64; QUANTILES.len()])>,
    /// CPU time over time of the asking side, the median of all repetitions.
    pub cpu_share: Option<f64>,
    /// The reason why it could not be measured (any more).
    pub refused: Option<String>,
    /// Median over that of the base in the same repetition.
    pub ratio: Option<Summary>,
    shares: Vec<f64>,
}

/// The quantiles that reports show; the last is the maximum.
pub const QUANTILES: [f64; 5] = [0.5, 0.9, 0.99, 0.999, 1.0];

impl TripTable {
    /// Returns the line of this name and load, creating it if necessary.
    pub fn line(&mut self, name: &str, load_pps: f64) -> &mut TripLine {
        let is = |line: &TripLine| line.name == name && line.load_pps == load_pps;
        let at = self.lines.iter().position(is).unwrap_or_else(|| {
            let name = name.to_owned();
            self.lines.push(TripLine { name, load_pps, ..TripLine::default() });
            self.lines.len() - 1
        });
        &mut self.lines[at]
    }

    /// Computes the ratios to the base at the same load; to be called after the measurements.
    pub fn sum_up(&mut self) {
        let medians = |line: &TripLine| -> Vec<(usize, f64)> {
            line.runs.iter().map(|(turn, quantiles)| (*turn, quantiles[0] as f64)).collect()
        };
        let bases: Vec<_> = self.lines.iter().filter(|line| line.name == BASE).cloned().collect();
        for line in &mut self.lines {
            let base = bases.iter().find(|base| base.load_pps == line.load_pps);
            line.ratio = base.and_then(|base| ratios(&medians(line), &medians(base)));
            line.cpu_share = Summary::of(&line.shares).map(|share| share.median);
        }
    }
}

impl TripLine {
    /// Adds a repetition.
    pub fn add(&mut self, turn: usize, trips: &RoundTrips) {
        self.histogram.merge(&trips.from_due);
        self.uncorrected.merge(&trips.from_sent);
        self.lost += trips.lost;
        self.load_sent += trips.load_sent;
        self.shares.push(trips.cpu_share);
        self.runs.push((turn, QUANTILES.map(|share| trips.from_due.quantile_ns(share))));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_of_medians_are_taken_within_a_repetition_and_a_load() {
        let trips = |ns| {
            let mut trips = RoundTrips::default();
            trips.from_due.record_many(ns, 10);
            trips
        };
        let mut table = TripTable::default();
        for (turn, base, other) in [(0, 10_000, 5_000), (1, 40_000, 8_000)] {
            table.line(BASE, 0.0).add(turn, &trips(base));
            table.line(BASE, 1e5).add(turn, &trips(base * 10));
            table.line("other", 0.0).add(turn, &trips(other));
        }
        table.line("alone", 7.0).add(0, &trips(1));
        table.sum_up();
        let ratio = table.line("other", 0.0).ratio.unwrap();
        assert!((ratio.min - 0.2).abs() < 0.01 && (ratio.max - 0.5).abs() < 0.01, "{ratio:?}");
        assert_eq!(table.line("other", 0.0).histogram.count(), 20);
        assert!(table.line("alone", 7.0).ratio.is_none());
    }
}
