//! Pseudo-random noise: fast, seeded, the same everywhere.

use crate::Sample;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// Xoshiro256++ (Blackman and Vigna 2019), seeded by SplitMix64.
#[derive(Clone, Debug)]
pub struct Noise {
    bits: Xoshiro256PlusPlus,
    /// The second of two Gaussian values.
    spare: Option<f32>,
}

impl Noise {
    /// Creates the noise of a seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self { bits: Xoshiro256PlusPlus::seed_from_u64(seed), spare: None }
    }

    /// Returns 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.bits.next_u64()
    }

    /// Returns a uniform value from 0 to below 1.
    pub fn unit(&mut self) -> f32 {
        (self.bits() >> 40) as f32 * (1.0 / 16_777_216.0)
    }

    /// Returns two independent Gaussian values of variance 1 (Box and Muller 1958).
    pub fn gaussian_pair(&mut self) -> Sample {
        let bits = self.bits();
        // Above zero, so that the logarithm is finite.
        let radius = ((bits >> 40) as f32 + 1.0) * (1.0 / 16_777_216.0);
        let angle = (bits as u32) as f32 * (std::f32::consts::TAU / 4_294_967_296.0);
        Sample::from_polar((-2.0 * radius.ln()).sqrt(), angle)
    }

    /// Returns a Gaussian value of variance 1.
    pub fn gaussian(&mut self) -> f32 {
        if let Some(spare) = self.spare.take() {
            return spare;
        }
        let pair = self.gaussian_pair();
        self.spare = Some(pair.im);
        pair.re
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_generator_gives_its_published_values() {
        // The state 1, 2, 3, 4, as in the test of the rand_xoshiro crate.
        let bits = Xoshiro256PlusPlus::from_seed(bytemuck::cast([1u64, 2, 3, 4]));
        let mut noise = Noise { bits, spare: None };
        let first: [u64; 4] = std::array::from_fn(|_| noise.bits());
        let expected = [41_943_041, 58_720_359, 3_588_806_011_781_223, 3_591_011_842_654_386];
        assert_eq!(first, expected);
    }

    #[test]
    fn gaussian_noise_has_the_moments_of_the_normal_distribution() {
        let mut noise = Noise::new(1);
        let count = 1_000_000;
        let (mut sums, mut beyond_two) = ([0.0f64; 4], 0);
        for _ in 0..count {
            let x = f64::from(noise.gaussian());
            for (power, sum) in sums.iter_mut().enumerate() {
                *sum += x.powi(power as i32 + 1) / f64::from(count);
            }
            beyond_two += u32::from(x.abs() > 2.0);
        }
        for (moment, expected) in sums.into_iter().zip([0.0, 1.0, 0.0, 3.0]) {
            assert!((moment - expected).abs() < 0.02, "{moment} {expected}");
        }
        assert!((f64::from(beyond_two) / f64::from(count) - 0.0455).abs() < 0.001);
    }

    #[test]
    fn even_noise_fills_its_range() {
        let mut noise = Noise::new(7);
        let values: Vec<f32> = (0..100_000).map(|_| noise.unit()).collect();
        assert!(values.iter().all(|x| (0.0..1.0).contains(x)));
        for tenth in 0..10 {
            let low = tenth as f32 / 10.0;
            let share = values.iter().filter(|x| (low..low + 0.1).contains(*x)).count();
            assert!((9_500..10_500).contains(&share), "{low}: {share}");
        }
    }
}
