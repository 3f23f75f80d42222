//! The rounds of a wait mode at a rate together.

use millstream_stats::{Histogram, Summary};
use serde::Serialize;

use super::{WaitCase, WaitFigures};
use crate::CaseRuns;

/// A row with all rounds.
#[derive(Debug, Clone, Serialize)]
pub struct WaitLine {
    /// The link.
    pub link: String,
    /// The wait mode.
    pub wait: &'static str,
    /// Packets per second.
    pub rate_pps: f64,
    /// Packets that were sent.
    pub sent: u64,
    /// From the sending of a packet until the thread had it.
    pub delays: Histogram,
    /// CPU time of the waiting thread over time, in each round.
    pub cpu_share: Option<Summary>,
    /// Times per second at which it went to sleep, of the median round.
    pub sleeps_hz: Option<f64>,
    /// The reason why it could not be measured (any more).
    pub refused: Option<String>,
}

impl WaitLine {
    /// Sums up what the rounds gave for a case.
    #[must_use]
    pub fn of(case: &WaitCase, taken: &CaseRuns<WaitFigures>) -> Self {
        let mut delays = Histogram::default();
        taken.outcomes().for_each(|found| delays.merge(&found.delivered.delays));
        Self {
            link: case.link.clone(),
            wait: case.wait.name(),
            rate_pps: case.rate_pps,
            sent: taken.outcomes().map(|found| found.sent).sum(),
            delays,
            cpu_share: taken.summary(|found| found.delivered.cpu_share),
            sleeps_hz: taken.median(|found| found.delivered.sleeps_hz),
            refused: taken.refused.clone(),
        }
    }

    /// Returns the packets that did not come.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.sent.saturating_sub(self.delays.count())
    }
}

#[cfg(test)]
mod tests {
    use super::super::Delivered;
    use super::*;
    use millstream_ring::Wait;

    #[test]
    fn rounds_of_a_case_are_one_row() {
        let case = WaitCase { link: "udp".to_owned(), wait: Wait::Park, rate_pps: 1e3 };
        let costs = [(0.1, 900.0), (0.3, 1000.0), (0.2, 1100.0)];
        let found = costs.map(|(cpu_share, sleeps_hz)| {
            let mut delays = Histogram::default();
            delays.record_many(5000, 9);
            let (cpu_share, sleeps_hz) = (Some(cpu_share), Some(sleeps_hz));
            WaitFigures { sent: 10, delivered: Delivered { delays, cpu_share, sleeps_hz } }
        });
        let line =
            WaitLine::of(&case, &CaseRuns { runs: (0..).zip(found).collect(), refused: None });
        assert_eq!((line.sent, line.lost(), line.sleeps_hz), (30, 3, Some(1000.0)));
        let share = line.cpu_share.unwrap();
        assert!((share.median, share.min, share.max) == (0.2, 0.1, 0.3), "{share:?}");
        let short = WaitFigures { sent: 1, delivered: Delivered::default() };
        let short = CaseRuns { runs: vec![(0, short)], refused: Some("no".to_owned()) };
        assert!(WaitLine::of(&case, &short).cpu_share.is_none());
    }
}
