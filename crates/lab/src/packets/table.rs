//! Repeated measurements of all rows, as ratios to the base in the same repetition.

use serde::Serialize;

use millstream_stats::Summary;

use super::measure::RowMeasurement;
use super::rows::BASE;

/// The rows of one packet size.
#[derive(Debug, Clone, Default, Serialize)]
pub struct PacketTable {
    /// Bytes of each packet as an Ethernet frame.
    pub frame_bytes: usize,
    /// Rows in the order of their first result.
    pub lines: Vec<RowResults>,
}

/// A row with its measurements.
#[derive(Debug, Clone, Default, Serialize)]
pub struct RowResults {
    /// Its name.
    pub name: String,
    /// Repetition and result.
    pub runs: Vec<(usize, RowMeasurement)>,
    /// The run in which the kernel counted system calls; its rate does not count.
    pub traced: Option<RowMeasurement>,
    /// The reason why the kernel did not count them.
    pub untraced: Option<String>,
    /// The reason why it could not be measured (any more).
    pub refused: Option<String>,
    /// Received packets per second.
    pub rate_pps: Option<Summary>,
    /// Rate over that of the base in the same repetition.
    pub ratio: Option<Summary>,
}

impl PacketTable {
    /// Creates a table without rows.
    #[must_use]
    pub fn new(frame_bytes: usize) -> Self {
        Self { frame_bytes, lines: Vec::new() }
    }

    /// Returns the line of this name, creating it if necessary.
    pub fn line(&mut self, name: &str) -> &mut RowResults {
        let at = self.lines.iter().position(|line| line.name == name).unwrap_or_else(|| {
            self.lines.push(RowResults { name: name.to_owned(), ..RowResults::default() });
            self.lines.len() - 1
        });
        &mut self.lines[at]
    }

    /// Computes summaries and ratios; to be called after the measurements.
    pub fn sum_up(&mut self) {
        let rates = |line: &RowResults| -> Vec<(usize, f64)> {
            line.runs.iter().map(|(turn, run)| (*turn, run.rate_pps)).collect()
        };
        let base =
            self.lines.iter().filter(|line| line.name == BASE).flat_map(rates).collect::<Vec<_>>();
        for line in &mut self.lines {
            let own = rates(line);
            line.rate_pps = Summary::of(&own.iter().map(|(_, rate)| *rate).collect::<Vec<_>>());
            line.ratio = ratios(&own, &base);
        }
    }
}

/// Returns the ratios of figures to those of the base in the same repetition.
pub(super) fn ratios(own: &[(usize, f64)], base: &[(usize, f64)]) -> Option<Summary> {
    let ratio = |(turn, figure): &(usize, f64)| {
        let (_, base) = base.iter().find(|(other, _)| other == turn)?;
        (*base > 0.0).then(|| figure / base)
    };
    Summary::of(&own.iter().filter_map(ratio).collect::<Vec<_>>())
}

impl RowResults {
    /// The median of a value over all runs.
    #[must_use]
    pub fn median(&self, of: impl Fn(&RowMeasurement) -> Option<f64>) -> Option<f64> {
        let values: Vec<_> = self.runs.iter().filter_map(|(_, run)| of(run)).collect();
        Summary::of(&values).map(|summary| summary.median)
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
        let runs = self.runs.iter().map(|(_, run)| run);
        runs.min_by(|a, b| distance(a).total_cmp(&distance(b)))
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
    fn ratios_are_taken_within_a_repetition() {
        let mut table = PacketTable::new(64);
        for (turn, base, other) in [(0, 100.0, 200.0), (1, 10.0, 30.0), (2, 50.0, 50.0)] {
            table.line(BASE).runs.push((turn, measured(base)));
            table.line("other").runs.push((turn, measured(other)));
        }
        table.line("other").runs.push((3, measured(1e9)));
        table.line("absent").refused = Some("no rights".to_owned());
        table.sum_up();
        let ratio = table.line("other").ratio.unwrap();
        assert_eq!((ratio.min, ratio.median, ratio.max, ratio.count), (1.0, 2.0, 3.0, 3));
        assert_eq!(table.line(BASE).ratio.unwrap().median, 1.0);
        assert_eq!(table.line("other").typical().unwrap().rate_pps, 200.0);
        assert!(table.line("absent").ratio.is_none() && table.line("absent").typical().is_none());
        let gbit_s = table.line(BASE).gbit_s(1000).unwrap();
        assert!((gbit_s - 50.0 * 8e-6).abs() < 1e-12, "{gbit_s}");
    }
}
