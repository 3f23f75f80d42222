//! Counts by size, always on: one thread records, anyone reads.

use std::sync::atomic::{AtomicU64, Ordering};

/// Bins of each octave, as a power of two.
const FINE_BITS: u32 = 4;
const FINE: usize = 1 << FINE_BITS;
const BINS: usize = FINE * (64 - FINE_BITS as usize + 1);

/// A histogram of whole numbers with bins of a sixteenth of an octave, so that a quantile is at
/// most 6.25 % too large. Recording stores two words and never allocates.
#[derive(Debug)]
pub struct Histogram {
    bins: Box<[AtomicU64]>,
    max: AtomicU64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self { bins: (0..BINS).map(|_| AtomicU64::new(0)).collect(), max: AtomicU64::new(0) }
    }
}

impl Histogram {
    /// An empty one.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Counts one `value`. By one thread only.
    pub fn record(&self, value: u64) {
        let bin = &self.bins[bin_of(value)];
        bin.store(bin.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        if value > self.max.load(Ordering::Relaxed) {
            self.max.store(value, Ordering::Relaxed);
        }
    }

    /// The largest value, exactly; 0 if there was none.
    #[must_use]
    pub fn max(&self) -> u64 {
        self.max.load(Ordering::Relaxed)
    }

    /// Values recorded.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.bins.iter().map(|bin| bin.load(Ordering::Relaxed)).sum()
    }

    /// The smallest number that `share` (0 to 1) of the values do not exceed, to the width of a
    /// bin; 0 if there were none.
    #[must_use]
    pub fn quantile(&self, share: f64) -> u64 {
        let rank = ((self.count() as f64 * share).ceil() as u64).max(1);
        let mut seen = 0;
        for (index, bin) in self.bins.iter().enumerate() {
            seen += bin.load(Ordering::Relaxed);
            if seen >= rank {
                return last_of(index).min(self.max());
            }
        }
        0
    }
}

/// Values below `FINE` have bins of their own; above, the leading bits choose.
fn bin_of(value: u64) -> usize {
    if value < FINE as u64 {
        return value as usize;
    }
    let shift = 63 - value.leading_zeros() - FINE_BITS;
    shift as usize * FINE + (value >> shift) as usize
}

/// The largest value of a bin.
fn last_of(bin: usize) -> u64 {
    if bin < FINE {
        return bin as u64;
    }
    let shift = bin / FINE - 1;
    let first = ((bin % FINE + FINE) as u64) << shift;
    first + ((1u64 << shift) - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_is_in_its_bin() {
        let edges = (0..64).flat_map(|bit| [1u64 << bit, (1u64 << bit) - 1, (1 << bit) + 3]);
        for value in edges.chain([0, 1000, 12_345_678, u64::MAX]) {
            let bin = bin_of(value);
            assert!(value <= last_of(bin), "{value}");
            assert!(bin == 0 || value > last_of(bin - 1), "{value}");
        }
        assert_eq!(bin_of(u64::MAX), BINS - 1);
    }

    #[test]
    fn quantiles_are_at_most_a_bin_too_large() {
        let histogram = Histogram::new();
        assert_eq!((histogram.quantile(0.5), histogram.max()), (0, 0));
        (1..=1000).for_each(|value| histogram.record(value));
        for (share, exact) in [(0.5, 500), (0.99, 990), (0.001, 1)] {
            let found = histogram.quantile(share);
            assert!((exact..=exact + exact / 16).contains(&found), "{share}: {found}");
        }
        assert_eq!((histogram.quantile(1.0), histogram.count()), (1000, 1000));
    }
}
