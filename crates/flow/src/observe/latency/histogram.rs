//! Counts by size, always on: one thread records, any thread reads.

use millstream_cpu::Classes;
use std::sync::atomic::{AtomicU64, Ordering};

/// Sixteen of each octave.
type Bins = Classes<4>;

/// A histogram of whole numbers with bins of a sixteenth of an octave, so that a quantile is at
/// most 6.25 % too large. Recording stores two words and never allocates.
#[derive(Debug)]
pub struct LatencyHistogram {
    bins: Box<[AtomicU64]>,
    max: AtomicU64,
}

impl Default for LatencyHistogram {
    fn default() -> Self {
        Self { bins: (0..Bins::COUNT).map(|_| AtomicU64::new(0)).collect(), max: AtomicU64::new(0) }
    }
}

impl LatencyHistogram {
    /// Returns an empty histogram.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Counts one `value`. Called by one thread only.
    pub fn record(&self, value: u64) {
        let bin = &self.bins[Bins::of(value)];
        bin.store(bin.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        if value > self.max.load(Ordering::Relaxed) {
            self.max.store(value, Ordering::Relaxed);
        }
    }

    /// Returns the largest value, exactly; 0 if there was none.
    #[must_use]
    pub fn max(&self) -> u64 {
        self.max.load(Ordering::Relaxed)
    }

    /// Returns the number of recorded values.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.bins.iter().map(|bin| bin.load(Ordering::Relaxed)).sum()
    }

    /// Returns the smallest number that `share` (0 to 1) of the values do not exceed, to the width
    /// of a bin; 0 if there were no values.
    #[must_use]
    pub fn quantile(&self, share: f64) -> u64 {
        let rank = ((self.count() as f64 * share).ceil() as u64).max(1);
        let mut seen = 0;
        for (index, bin) in self.bins.iter().enumerate() {
            seen += bin.load(Ordering::Relaxed);
            if seen >= rank {
                return Bins::last(index).min(self.max());
            }
        }
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_at_most_a_bin_too_large() {
        let histogram = LatencyHistogram::new();
        assert_eq!((histogram.quantile(0.5), histogram.max()), (0, 0));
        (1..=1000).for_each(|value| histogram.record(value));
        for (share, exact) in [(0.5, 500), (0.99, 990), (0.001, 1)] {
            let found = histogram.quantile(share);
            assert!((exact..=exact + exact / 16).contains(&found), "{share}: {found}");
        }
        assert_eq!((histogram.quantile(1.0), histogram.count()), (1000, 1000));
    }
}
