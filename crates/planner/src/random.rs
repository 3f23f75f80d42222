//! Randomness from a seed.

use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// Random numbers from a seed.
#[derive(Clone, Debug)]
pub(crate) struct Random(SplitMix64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(SplitMix64::seed_from_u64(seed))
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Shuffles `items` (Fisher, Yates).
    pub(crate) fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            // The bias of a remainder is below 2^-50 for any number of plans.
            items.swap(last, (self.next() % (last as u64 + 1)) as usize);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Draws that only tests make.
    impl Random {
        /// Returns a number below `end`.
        pub(crate) fn below(&mut self, end: usize) -> usize {
            (self.next() % end.max(1) as u64) as usize
        }

        pub(crate) fn chance(&mut self, percent: usize) -> bool {
            self.below(100) < percent
        }

        /// Returns a number in [0, 1).
        pub(crate) fn uniform(&mut self) -> f64 {
            (self.next() >> 11) as f64 / (1u64 << 53) as f64
        }

        /// Returns a normal value: mean 0, standard deviation 1 (Box, Muller 1958).
        pub(crate) fn normal(&mut self) -> f64 {
            let (radius, angle) = (1.0 - self.uniform(), self.uniform());
            (-2.0 * radius.ln()).sqrt() * (std::f64::consts::TAU * angle).cos()
        }
    }

    #[test]
    fn every_order_comes_up_about_as_often() {
        let mut random = Random::new(1);
        let mut seen = std::collections::BTreeMap::new();
        for _ in 0..6000 {
            let mut items = [0, 1, 2];
            random.shuffle(&mut items);
            *seen.entry(items).or_insert(0) += 1;
        }
        assert_eq!(seen.len(), 6);
        assert!(seen.values().all(|count| (880..1120).contains(count)), "{seen:?}");
    }
}
