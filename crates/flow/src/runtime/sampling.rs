//! The choice of sweeps that are timed block by block, so that the cost model costs almost nothing.
//!
//! A clock read costs about as much as a small call of a block. So where calls are short, only some
//! sweeps are timed, at random distances (a fixed distance could beat with a period of the graph),
//! and each represents as many sweeps as it was picked from. Where calls are long, every sweep is
//! timed.

use std::time::Duration;

/// Clock reads may take one part in so many of the time.
const SHARE: u64 = 200;
/// The assumed cost of one read, nanoseconds.
const READ_NS: u64 = 25;
/// The most sweeps that one timed sweep represents.
const WEIGHT_MAX: u32 = 256;

/// The choice for one partition.
#[derive(Debug)]
pub(super) struct Sampling {
    enabled: bool,
    /// Sweeps that one timed sweep represents.
    weight: u32,
    /// Sweeps until the next timed one.
    left: u32,
    random: u32,
}

impl Sampling {
    /// Times every sweep until the first measurement, or no sweep if not `enabled`.
    pub(super) fn new(enabled: bool) -> Self {
        Self { enabled, weight: 1, left: 0, random: 0x9e37_79b9 }
    }

    /// Returns how many sweeps the one that begins now represents, if it is to be timed. A sweep
    /// that `may_wait` represents itself only.
    #[inline]
    pub(super) fn weight(&mut self, may_wait: bool) -> Option<u32> {
        if may_wait {
            return self.enabled.then_some(1);
        }
        if self.left > 0 {
            self.left -= 1;
            return None;
        }
        self.enabled.then_some(self.weight)
    }

    /// Adapts the weight to a timed sweep of this length and number of calls, and draws the next.
    /// Not for a sweep that might wait.
    pub(super) fn learn(&mut self, took: Duration, calls: u64) {
        if calls > 0 {
            let reads_ns = calls.saturating_mul(READ_NS * SHARE);
            let weight = reads_ns / (took.as_nanos() as u64).max(1);
            self.weight = weight.clamp(1, u64::from(WEIGHT_MAX)) as u32;
        }
        // Uniform, and `weight` sweeps from one timed to the next on average: xorshift32
        // (Marsaglia 2003).
        self.random ^= self.random << 13;
        self.random ^= self.random >> 17;
        self.random ^= self.random << 5;
        self.left = self.random % (2 * self.weight - 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the number of timed sweeps and of those that they represent, of `sweeps` that take
    /// `ns` with `calls` calls.
    fn run(sweeps: u32, ns: u64, calls: u64) -> (u32, u64) {
        let mut sampling = Sampling::new(true);
        let (mut timed, mut stands_for) = (0, 0);
        for _ in 0..sweeps {
            if let Some(weight) = sampling.weight(false) {
                timed += 1;
                stands_for += u64::from(weight);
                sampling.learn(Duration::from_nanos(ns), calls);
            }
        }
        (timed, stands_for)
    }

    #[test]
    fn long_calls_are_all_timed() {
        assert_eq!(run(1000, 1_000_000, 10), (1000, 1000));
    }

    #[test]
    fn short_ones_are_timed_seldom_and_stand_for_all() {
        let (timed, stands_for) = run(1_000_000, 1000, 10);
        let cost = f64::from(timed) * 10.0 * READ_NS as f64 / 1e9;
        assert!(cost < 0.006, "{cost} of the time goes into reads");
        assert!((980_000..1_020_000).contains(&stands_for), "{stands_for}");
    }

    #[test]
    fn a_sweep_that_may_wait_stands_for_itself() {
        let mut sampling = Sampling::new(true);
        sampling.learn(Duration::from_nanos(100), 10);
        assert_eq!(sampling.weight(true), Some(1));
    }

    #[test]
    fn switched_off_it_times_nothing() {
        let mut sampling = Sampling::new(false);
        assert!((0..100).all(|turn| sampling.weight(turn % 2 == 0).is_none()));
    }
}
