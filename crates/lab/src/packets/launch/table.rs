//! All ways to keep launch times, the repetitions of each together.

use millstream_link::launch::LaunchRefusals;
use millstream_stats::Summary;
use serde::Serialize;

use super::{LaunchFigures, LaunchOffsets, LaunchVia};

/// The rows of one comparison.
#[derive(Debug, Clone, Default, Serialize)]
pub struct LaunchTable {
    /// In the order of their first result.
    pub lines: Vec<LaunchLine>,
}

/// A row with all repetitions.
#[derive(Debug, Clone, Serialize)]
pub struct LaunchLine {
    /// What keeps the times.
    pub via: LaunchVia,
    /// Packets that were sent.
    pub sent: u64,
    /// From launch times to arrivals.
    pub offsets: LaunchOffsets,
    /// Packets that came too early, beyond the tolerance.
    pub early: u64,
    /// Packets that came too late, beyond the tolerance.
    pub late: u64,
    /// Packets that the queue dropped and reported, by reason.
    pub refusals: LaunchRefusals,
    /// Packets that the queue dropped, reported or not.
    pub dropped: u64,
    /// Packets that neither came nor were dropped by the queue.
    pub lost: u64,
    /// CPU time of the sending thread for each packet, of the median repetition, nanoseconds.
    pub cpu_ns: Option<f64>,
    /// The reason why it could not be measured.
    pub refused: Option<String>,
    #[serde(skip)]
    costs: Vec<f64>,
}

impl LaunchTable {
    /// Returns the row of a way, creating it if necessary.
    pub fn line(&mut self, via: LaunchVia) -> &mut LaunchLine {
        let at = self.lines.iter().position(|line| line.via == via).unwrap_or_else(|| {
            self.lines.push(LaunchLine::new(via));
            self.lines.len() - 1
        });
        &mut self.lines[at]
    }
}

impl LaunchLine {
    fn new(via: LaunchVia) -> Self {
        Self {
            via,
            sent: 0,
            offsets: LaunchOffsets::default(),
            early: 0,
            late: 0,
            refusals: LaunchRefusals::default(),
            dropped: 0,
            lost: 0,
            cpu_ns: None,
            refused: None,
            costs: Vec::new(),
        }
    }

    /// Adds a repetition.
    pub fn add(&mut self, found: &LaunchFigures) {
        let (sent, arrived) = (&found.sent, &found.arrived);
        self.sent += sent.sent;
        self.offsets.merge(&arrived.offsets);
        self.early += arrived.early;
        self.late += arrived.late;
        self.refusals.invalid += sent.refusals.invalid;
        self.refusals.missed += sent.refusals.missed;
        self.dropped += found.dropped();
        self.lost += found.lost();
        self.costs.push(sent.cpu_s * 1e9 / sent.sent.max(1) as f64);
        self.cpu_ns = Summary::of(&self.costs).map(|costs| costs.median);
    }

    /// Returns the packets that came within the tolerance.
    #[must_use]
    pub fn in_time(&self) -> u64 {
        self.offsets.count() - self.early - self.late
    }
}

#[cfg(test)]
mod tests {
    use super::super::{LaunchArrivals, LaunchSent};
    use super::*;
    use millstream_host::netlink::Queued;

    #[test]
    fn every_packet_is_in_one_column() {
        let mut offsets = LaunchOffsets::default();
        [-5000, 10, 20, 9000].into_iter().for_each(|ns| offsets.record(ns));
        let refusals = LaunchRefusals { invalid: 1, missed: 2 };
        let found = LaunchFigures {
            sent: LaunchSent { sent: 9, refusals, cpu_s: 9e-6 },
            arrived: LaunchArrivals { offsets, early: 1, late: 1 },
            queued: Some(Queued { drops: 3, ..Queued::default() }),
        };
        let mut table = LaunchTable::default();
        table.line(LaunchVia::Etf).add(&found);
        table.line(LaunchVia::Etf).add(&found);
        let [line] = &table.lines[..] else { panic!("one row") };
        assert_eq!((line.early, line.in_time(), line.late), (2, 4, 2));
        assert_eq!((line.dropped, line.lost, line.sent), (6, 4, 18));
        assert_eq!(line.refusals, LaunchRefusals { invalid: 2, missed: 4 });
        assert!((line.cpu_ns.unwrap() - 1000.0).abs() < 1.0);
    }
}
