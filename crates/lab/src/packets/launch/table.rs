//! The rounds of a way to keep launch times together.

use millstream_link::launch::LaunchRefusals;
use serde::Serialize;

use super::{LaunchFigures, LaunchOffsets, LaunchVia};
use crate::CaseRuns;

/// A row with all rounds.
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
    /// CPU time of the sending thread for each packet, of the median round, nanoseconds.
    pub cpu_ns: Option<f64>,
    /// The reason why it could not be measured.
    pub refused: Option<String>,
}

impl LaunchLine {
    /// Sums up what the rounds gave for a way.
    #[must_use]
    pub fn of(via: LaunchVia, taken: &CaseRuns<LaunchFigures>) -> Self {
        let mut offsets = LaunchOffsets::default();
        taken.outcomes().for_each(|found| offsets.merge(&found.arrived.offsets));
        let sum = |of: fn(&LaunchFigures) -> u64| taken.outcomes().map(of).sum();
        let cost = |LaunchFigures { sent, .. }: &LaunchFigures| {
            Some(sent.cpu_s * 1e9 / sent.sent.max(1) as f64)
        };
        Self {
            via,
            sent: sum(|found| found.sent.sent),
            offsets,
            early: sum(|found| found.arrived.early),
            late: sum(|found| found.arrived.late),
            refusals: LaunchRefusals {
                invalid: sum(|found| found.sent.refusals.invalid),
                missed: sum(|found| found.sent.refusals.missed),
            },
            dropped: sum(LaunchFigures::dropped),
            lost: sum(LaunchFigures::lost),
            cpu_ns: taken.median(cost),
            refused: taken.refused.clone(),
        }
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
        let taken = CaseRuns { runs: vec![(0, found.clone()), (1, found)], refused: None };
        let line = LaunchLine::of(LaunchVia::Etf, &taken);
        assert_eq!((line.early, line.in_time(), line.late), (2, 4, 2));
        assert_eq!((line.dropped, line.lost, line.sent), (6, 4, 18));
        assert_eq!(line.refusals, LaunchRefusals { invalid: 2, missed: 4 });
        assert!((line.cpu_ns.unwrap() - 1000.0).abs() < 1.0);
    }
}
