//! Named numbers that a block publishes while it runs: packet errors, signal to noise, locks.
//!
//! A block keeps a clone of the handle and writes it from `work`; any thread may read it at any
//! time, without a lock. Problems in the data path are counters here, not log lines.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A count that only grows.
#[derive(Clone, Debug, Default)]
pub struct Counter(Arc<AtomicU64>);

impl Counter {
    /// Makes a counter at zero.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds `n`.
    pub fn add(&self, n: u64) {
        self.0.fetch_add(n, Ordering::Relaxed);
    }

    /// Returns the count so far.
    #[must_use]
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// A number that goes up and down; NaN until first set.
#[derive(Clone, Debug)]
pub struct Gauge(Arc<AtomicU64>);

impl Default for Gauge {
    fn default() -> Self {
        Self(Arc::new(AtomicU64::new(f64::NAN.to_bits())))
    }
}

impl Gauge {
    /// Makes a gauge that is not set yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the value.
    pub fn set(&self, value: f64) {
        self.0.store(value.to_bits(), Ordering::Relaxed);
    }

    /// Returns the value last set, NaN if never set.
    #[must_use]
    pub fn get(&self) -> f64 {
        f64::from_bits(self.0.load(Ordering::Relaxed))
    }
}

/// A block's named number, as [`BlockFacts`](crate::BlockFacts) lists it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Metric {
    /// A count that only grows.
    Counter(Counter),
    /// A value that goes up and down.
    Gauge(Gauge),
}

impl From<&Counter> for Metric {
    fn from(counter: &Counter) -> Self {
        Self::Counter(counter.clone())
    }
}

impl From<&Gauge> for Metric {
    fn from(gauge: &Gauge) -> Self {
        Self::Gauge(gauge.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handles_share_one_number() {
        let (counter, gauge) = (Counter::new(), Gauge::new());
        assert!(gauge.get().is_nan());
        counter.clone().add(3);
        gauge.clone().set(-1.5);
        assert_eq!((counter.get(), gauge.get()), (3, -1.5));
    }
}
