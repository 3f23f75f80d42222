//! Random numbers from a seed.

use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// Random numbers that a seed determines, the same everywhere: SplitMix64 (Steele, Lea, Flood,
/// OOPSLA 2014). For choices and drawn cases; noise in signals is `dsp`'s.
#[derive(Clone, Debug)]
pub struct Random(SplitMix64);

impl Random {
    /// Creates the numbers of a seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(SplitMix64::seed_from_u64(seed))
    }

    /// Returns 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Returns a number below `bound`, of which 0 counts as 1. The bias of the remainder is below
    /// 2^-40 for any bound below 2^24.
    pub fn below(&mut self, bound: usize) -> usize {
        (self.bits() % bound.max(1) as u64) as usize
    }

    /// Returns true with probability `p`.
    pub fn chance(&mut self, p: f64) -> bool {
        self.uniform() < p
    }

    /// Returns a value from 0 to below 1.
    pub fn uniform(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Returns a normal value: mean 0, standard deviation 1 (Box, Muller 1958).
    pub fn normal(&mut self) -> f64 {
        let (radius, angle) = (1.0 - self.uniform(), self.uniform());
        (-2.0 * radius.ln()).sqrt() * (std::f64::consts::TAU * angle).cos()
    }

    /// Puts the items into a random order (Fisher, Yates).
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last + 1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_numbers_and_they_match_the_reference() {
        // First outputs for seed 1234567 of the published C implementation.
        let mut random = Random::new(1_234_567);
        let want = [6_457_827_717_110_365_317, 3_203_168_211_198_807_973];
        assert_eq!([random.bits(), random.bits()], want);
    }

    #[test]
    fn chance_is_as_frequent_as_asked() {
        let mut random = Random::new(1);
        let hits = (0..100_000).filter(|_| random.chance(0.1)).count();
        assert!((9_500..10_500).contains(&hits), "{hits}");
        assert!(!random.chance(0.0) && random.chance(1.0));
        assert_eq!((random.below(0), random.below(1)), (0, 0));
    }

    #[test]
    fn normal_values_have_the_moments_of_their_distribution() {
        let mut random = Random::new(3);
        let values: Vec<f64> = (0..200_000).map(|_| random.normal()).collect();
        for (power, expected) in [(1, 0.0), (2, 1.0), (3, 0.0), (4, 3.0)] {
            let sum: f64 = values.iter().map(|value| value.powi(power)).sum();
            let moment = sum / values.len() as f64;
            assert!((moment - expected).abs() < 0.05, "{power}: {moment}");
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
