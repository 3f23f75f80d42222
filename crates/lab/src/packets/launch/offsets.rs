//! The distribution of a time that may be negative.

use millstream_stats::Histogram;
use serde::{Deserialize, Serialize};

/// Times from launch times, negative where a packet came before.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LaunchOffsets {
    /// The packets that came before their time: how much.
    pub before: Histogram,
    /// The packets that came at their time or after it: how much.
    pub after: Histogram,
}

impl LaunchOffsets {
    /// Adds a value.
    pub fn record(&mut self, offset_ns: i64) {
        let side = if offset_ns < 0 { &mut self.before } else { &mut self.after };
        side.record(offset_ns.unsigned_abs());
    }

    /// Adds all values of another distribution.
    pub fn merge(&mut self, other: &Self) {
        self.before.merge(&other.before);
        self.after.merge(&other.after);
    }

    /// Returns the number of values.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.before.count() + self.after.count()
    }

    /// Returns the value that a share `quantile` of all does not exceed, nanoseconds; `None`
    /// without values. 0 is the least, 1 the largest.
    #[must_use]
    pub fn quantile_ns(&self, quantile: f64) -> Option<i64> {
        let signed = |ns: u64| i64::try_from(ns).unwrap_or(i64::MAX);
        let [before, after] = [&self.before, &self.after].map(|side| side.count() as f64);
        let rank = quantile.clamp(0.0, 1.0) * (before + after);
        if before + after == 0.0 {
            return None;
        }
        if rank < before || after == 0.0 {
            // The most negative value is the largest of this side.
            return Some(-signed(match rank {
                0.0 => self.before.max_ns(),
                _ => self.before.quantile_ns(1.0 - rank / before),
            }));
        }
        Some(signed(match rank - before {
            0.0 => self.after.min_ns(),
            rank => self.after.quantile_ns(rank / after),
        }))
    }

    /// Returns the distances from the launch time, whichever side of it.
    #[must_use]
    pub fn distances(&self) -> Histogram {
        let mut all = self.before.clone();
        all.merge(&self.after);
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_go_from_the_earliest_to_the_latest() {
        let mut offsets = LaunchOffsets::default();
        assert_eq!(offsets.quantile_ns(0.5), None);
        for offset_ns in -400..600 {
            offsets.record(offset_ns * 1000);
        }
        assert_eq!((offsets.count(), offsets.distances().count()), (1000, 1000));
        let quantile = |share| offsets.quantile_ns(share).unwrap() as f64;
        assert_eq!((quantile(0.0), quantile(1.0)), (-400_000.0, 599_000.0));
        // The classes of a histogram are a few percent wide.
        for (share, ns) in [(0.1, -300e3), (0.3, -100e3), (0.5, 100e3), (0.9, 500e3)] {
            assert!((quantile(share) - ns).abs() < 0.05 * ns.abs(), "{share}: {}", quantile(share));
        }
        let mut all = offsets.clone();
        all.merge(&offsets);
        assert_eq!(all.count(), 2000);
    }

    #[test]
    fn one_side_alone_has_all_quantiles() {
        for sign in [-1, 1] {
            let mut offsets = LaunchOffsets::default();
            (1..=100).for_each(|ns| offsets.record(sign * ns));
            let [least, middle, most] = [0.0, 0.5, 1.0].map(|q| offsets.quantile_ns(q).unwrap());
            assert!(least < middle && middle < most, "{sign}: {least} {middle} {most}");
            assert!((middle - sign * 50).abs() <= 3, "{middle}");
        }
    }
}
