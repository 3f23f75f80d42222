//! All wait modes at all rates, the repetitions of each together.

use millstream_stats::{Histogram, Summary};
use serde::Serialize;

use super::{WaitCase, WaitFigures};

/// The rows of one comparison.
#[derive(Debug, Clone, Default, Serialize)]
pub struct WaitTable {
    /// In the order of their first result.
    pub lines: Vec<WaitLine>,
}

/// A row with all repetitions.
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
    /// CPU time of the waiting thread over time, in each repetition.
    pub cpu_share: Option<Summary>,
    /// Times per second at which it went to sleep, of the median repetition.
    pub sleeps_hz: Option<f64>,
    /// The reason why it could not be measured (any more).
    pub refused: Option<String>,
    #[serde(skip)]
    runs: Vec<[f64; 2]>,
}

impl WaitTable {
    /// Returns the row of a case, creating it if necessary.
    pub fn line(&mut self, case: &WaitCase) -> &mut WaitLine {
        let WaitCase { link, wait, rate_pps } = case;
        let is = |line: &WaitLine| {
            (&line.link, line.wait, line.rate_pps) == (link, wait.name(), *rate_pps)
        };
        let at = self.lines.iter().position(is).unwrap_or_else(|| {
            self.lines.push(WaitLine {
                link: link.clone(),
                wait: wait.name(),
                rate_pps: *rate_pps,
                sent: 0,
                delays: Histogram::default(),
                cpu_share: None,
                sleeps_hz: None,
                refused: None,
                runs: Vec::new(),
            });
            self.lines.len() - 1
        });
        &mut self.lines[at]
    }
}

impl WaitLine {
    /// Adds a repetition.
    pub fn add(&mut self, found: &WaitFigures) {
        self.sent += found.sent;
        self.delays.merge(&found.delivered.delays);
        let costs = found.delivered.cpu_share.zip(found.delivered.sleeps_hz);
        self.runs.extend(costs.map(|(cpu_share, sleeps_hz)| [cpu_share, sleeps_hz]));
        let of = |index: usize| {
            let values: Vec<_> = self.runs.iter().map(|run| run[index]).collect();
            Summary::of(&values)
        };
        (self.cpu_share, self.sleeps_hz) = (of(0), of(1).map(|sleeps| sleeps.median));
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
    fn repetitions_of_a_case_are_one_row() {
        let case = |wait, rate_pps| WaitCase { link: "udp".to_owned(), wait, rate_pps };
        let mut table = WaitTable::default();
        for (cpu_share, sleeps_hz) in [(0.1, 900.0), (0.3, 1000.0), (0.2, 1100.0)] {
            let mut delays = Histogram::default();
            delays.record_many(5000, 9);
            let (cpu_share, sleeps_hz) = (Some(cpu_share), Some(sleeps_hz));
            let delivered = Delivered { delays, cpu_share, sleeps_hz };
            table.line(&case(Wait::Park, 1e3)).add(&WaitFigures { sent: 10, delivered });
        }
        let short = WaitFigures { sent: 1, delivered: Delivered::default() };
        table.line(&case(Wait::Park, 1e4)).add(&short);
        table.line(&case(Wait::Park, 1e4)).refused = Some("no".to_owned());
        let [line, other] = &table.lines[..] else { panic!("two rows") };
        assert_eq!((line.sent, line.lost(), line.sleeps_hz), (30, 3, Some(1000.0)));
        let share = line.cpu_share.unwrap();
        assert!((share.median, share.min, share.max) == (0.2, 0.1, 0.3), "{share:?}");
        assert!(other.cpu_share.is_none());
    }
}
