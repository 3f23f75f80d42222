//! Counts by size that one thread adds to while others read them.

use crate::Classes;
use std::sync::atomic::{AtomicU64, Ordering};

/// A histogram of whole numbers with 2^`BITS` classes from a power of two to the next: a quantile
/// is at most 2^-`BITS` too large. It differs from a [`Histogram`](crate::Histogram) in what it
/// costs: recording stores three words, without an atomic addition, and readers need no lock; they
/// may miss the latest values.
#[derive(Debug)]
pub struct SharedHistogram<const BITS: u32> {
    counts: Box<[AtomicU64]>,
    sum: AtomicU64,
    max: AtomicU64,
}

/// Latencies as a running graph counts them: a quantile is at most 6.25 % too large.
pub type LatencyHistogram = SharedHistogram<4>;

impl<const BITS: u32> Default for SharedHistogram<BITS> {
    fn default() -> Self {
        let counts = (0..Classes::<BITS>::COUNT).map(|_| AtomicU64::new(0)).collect();
        Self { counts, sum: AtomicU64::new(0), max: AtomicU64::new(0) }
    }
}

impl<const BITS: u32> SharedHistogram<BITS> {
    /// Counts one `value`. Called by one thread only.
    pub fn record(&self, value: u64) {
        let add = |number: &AtomicU64, more: u64| {
            number.store(number.load(Ordering::Relaxed).wrapping_add(more), Ordering::Relaxed);
        };
        add(&self.counts[Classes::<BITS>::of(value)], 1);
        add(&self.sum, value);
        if value > self.max.load(Ordering::Relaxed) {
            self.max.store(value, Ordering::Relaxed);
        }
    }

    /// Counts one `value`, whichever threads record others meanwhile.
    pub fn record_beside_others(&self, value: u64) {
        self.counts[Classes::<BITS>::of(value)].fetch_add(1, Ordering::Relaxed);
        self.sum.fetch_add(value, Ordering::Relaxed);
        self.max.fetch_max(value, Ordering::Relaxed);
    }

    /// Returns the largest value, exactly; 0 if there was none.
    #[must_use]
    pub fn max(&self) -> u64 {
        self.max.load(Ordering::Relaxed)
    }

    /// Returns the sum of all values.
    #[must_use]
    pub fn sum(&self) -> u64 {
        self.sum.load(Ordering::Relaxed)
    }

    /// Returns the number of recorded values.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.counts().map(|(_, count)| count).sum()
    }

    /// Returns all classes, ascending: their largest value and number of values.
    pub fn counts(&self) -> impl DoubleEndedIterator<Item = (u64, u64)> + '_ {
        let class = |(class, count): (usize, &AtomicU64)| {
            (Classes::<BITS>::last(class), count.load(Ordering::Relaxed))
        };
        self.counts.iter().enumerate().map(class)
    }

    /// Returns the smallest number that `share` (0 to 1) of the values do not exceed, to the width
    /// of a class; 0 if there were no values.
    #[must_use]
    pub fn quantile(&self, share: f64) -> u64 {
        let rank = ((self.count() as f64 * share).ceil() as u64).max(1);
        let mut seen = 0;
        let reached = self.counts().find(|(_, count)| {
            seen += count;
            seen >= rank
        });
        reached.map_or(0, |(last, _)| last.min(self.max()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_at_most_a_class_too_large() {
        let histogram = SharedHistogram::<4>::default();
        assert_eq!((histogram.quantile(0.5), histogram.max()), (0, 0));
        (1..=1000).for_each(|value| histogram.record(value));
        for (share, exact) in [(0.5, 500), (0.99, 990), (0.001, 1)] {
            let found = histogram.quantile(share);
            assert!((exact..=exact + exact / 16).contains(&found), "{share}: {found}");
        }
        assert_eq!((histogram.quantile(1.0), histogram.count()), (1000, 1000));
        assert_eq!(histogram.sum(), 500_500);
    }

    #[test]
    fn threads_that_record_beside_each_other_lose_nothing() {
        let histogram = SharedHistogram::<0>::default();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..1000).for_each(|value| histogram.record_beside_others(value)));
            }
        });
        assert_eq!((histogram.count(), histogram.max(), histogram.sum()), (4000, 999, 1_998_000));
    }
}
