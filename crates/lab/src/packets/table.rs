//! Repeated measurements of all rows, as ratios to the base in the same round.

use serde::Serialize;

use millstream_stats::Summary;

use super::measure::RowMeasurement;
use super::rows::BASE;
use crate::CaseRuns;

/// The rows of one packet size.
#[derive(Debug, Clone, Default, Serialize)]
pub struct PacketTable {
    /// Bytes of each packet as an Ethernet frame.
    pub frame_bytes: usize,
    /// The rows.
    pub lines: Vec<RowResults>,
}

/// What one round gave for a row.
#[derive(Debug, Clone)]
pub enum RowRun {
    /// A measurement that counts.
    Counted(Box<RowMeasurement>),
    /// The one in which the kernel counted system calls; its rate does not count.
    Traced(Box<RowMeasurement>),
    /// The reason why the kernel did not count them.
    Untraced(String),
}

/// A row with its measurements.
#[derive(Debug, Clone, Default, Serialize)]
pub struct RowResults {
    /// Its name.
    pub name: String,
    /// The measurements that count.
    #[serde(flatten)]
    pub taken: CaseRuns<RowMeasurement>,
    /// The run in which the kernel counted system calls; its rate does not count.
    pub traced: Option<RowMeasurement>,
    /// The reason why the kernel did not count them.
    pub untraced: Option<String>,
    /// Received packets per second.
    pub rate_pps: Option<Summary>,
    /// Rate over that of the base in the same round.
    pub ratio: Option<Summary>,
}

impl PacketTable {
    /// Sums up rows: their names, and what the rounds gave.
    #[must_use]
    pub fn of(frame_bytes: usize, rows: Vec<(String, CaseRuns<RowRun>)>) -> Self {
        let mut lines: Vec<_> = rows.into_iter().map(RowResults::new).collect();
        let base = lines.iter().find(|line| line.name == BASE).map(|line| line.taken.clone());
        let rate = |run: &RowMeasurement| run.rate_pps;
        for line in &mut lines {
            line.rate_pps = line.taken.summary(|run| Some(rate(run)));
            line.ratio = base.as_ref().and_then(|base| line.taken.ratios(base, rate, rate));
        }
        Self { frame_bytes, lines }
    }
}

impl RowResults {
    fn new((name, found): (String, CaseRuns<RowRun>)) -> Self {
        let mut row = Self { name, ..Self::default() };
        row.taken.refused = found.refused;
        for (round, run) in found.runs {
            match run {
                RowRun::Counted(run) => row.taken.runs.push((round, *run)),
                RowRun::Traced(run) => row.traced = Some(*run),
                RowRun::Untraced(why) => row.untraced = Some(why),
            }
        }
        row
    }

    /// Gigabits per second of Ethernet frames at the median rate.
    #[must_use]
    pub fn gbit_s(&self, frame_bytes: usize) -> Option<f64> {
        self.rate_pps.map(|rate| rate.median * frame_bytes as f64 * 8e-9)
    }

    /// The run whose rate is the median, or nearest to it.
    #[must_use]
    pub fn typical(&self) -> Option<&RowMeasurement> {
        let median = self.rate_pps?.median;
        let distance = |run: &RowMeasurement| (run.rate_pps - median).abs();
        self.taken.outcomes().min_by(|a, b| distance(a).total_cmp(&distance(b)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packets::budget::PacketBudget;
    use crate::packets::limit::LimitingResource;
    use crate::packets::window::WindowCounts;

    fn measured(rate_pps: f64) -> RowMeasurement {
        RowMeasurement {
            rate_pps,
            sender: WindowCounts::default(),
            receiver: WindowCounts::default(),
            sent: 0,
            received: 0,
            returned: 0,
            events: Vec::new(),
            unaccounted: 0,
            budget: PacketBudget::default(),
            limit: LimitingResource::Unclear,
        }
    }

    #[test]
    fn a_row_has_its_ratios_its_trace_and_the_reason_why_it_is_absent() {
        let taken = |rates: &[f64]| {
            let run = |rate: &f64| RowRun::Counted(Box::new(measured(*rate)));
            CaseRuns { runs: (0..).zip(rates.iter().map(run)).collect(), refused: None }
        };
        let mut other = taken(&[200.0, 30.0, 50.0]);
        other.runs.push((3, RowRun::Traced(Box::new(measured(1e9)))));
        let absent = CaseRuns { runs: Vec::new(), refused: Some("no rights".to_owned()) };
        let rows = [("other", other), ("absent", absent), (BASE, taken(&[100.0, 10.0, 50.0]))];
        let rows = rows.map(|(name, runs)| (name.to_owned(), runs)).into();
        let [other, absent, base] = &PacketTable::of(64, rows).lines[..] else { panic!() };
        let ratio = other.ratio.unwrap();
        assert_eq!((ratio.min, ratio.median, ratio.max, ratio.count), (1.0, 2.0, 3.0, 3));
        assert_eq!(base.ratio.unwrap().median, 1.0);
        assert_eq!(other.typical().unwrap().rate_pps, 50.0);
        assert_eq!(other.traced.as_ref().unwrap().rate_pps, 1e9);
        assert!(absent.ratio.is_none() && absent.typical().is_none());
        assert!(absent.taken.refused.is_some());
        let gbit_s = base.gbit_s(1000).unwrap();
        assert!((gbit_s - 50.0 * 8e-6).abs() < 1e-12, "{gbit_s}");
    }
}
