//! From the radio's 16 bits to the protocol's 8, with dither.
//!
//! Rounding alone makes an error that depends on the signal: a weak signal disappears, a strong one
//! gets a comb of lines. The sum of two uniform random numbers of one step each, added before the
//! rounding, makes mean and power of the error independent of the signal (S. P. Lipshitz, R. A.
//! Wannamaker, J. Vanderkooy, "Quantization and Dither: A Theoretical Survey", J. Audio Eng. Soc.
//! 40, 1992). What is left is noise of a quarter of a squared step, as receivers with 8 bits have.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// One step of 8 bits, in steps of 16.
const STEP: i32 = 256;

/// Converts samples; each sample has noise of its own.
#[derive(Debug)]
pub(super) struct Dither {
    bits: Xoshiro256PlusPlus,
}

impl Default for Dither {
    fn default() -> Self {
        // Any seed serves: the noise only has to be white.
        Self { bits: Xoshiro256PlusPlus::seed_from_u64(1) }
    }
}

impl Dither {
    /// Returns the bytes of a sample of 16 bits, I and Q, whose middle is 128.
    pub fn bytes(&mut self, sample: [i16; 2]) -> [u8; 2] {
        let noise = (self.bits.next_u64() >> 32) as u32;
        let [a, b, c, d] = noise.to_le_bytes().map(i32::from);
        // Two numbers of 0 to 255 have the mean 255.
        let step = |value: i16, noise: i32| {
            let sum = i32::from(value) + noise - (STEP - 1) + STEP / 2;
            (sum.div_euclid(STEP) + 128).clamp(0, 255) as u8
        };
        [step(sample[0], a + b), step(sample[1], c + d)]
    }
}

#[cfg(test)]
mod tests {
    use std::f64::consts::TAU;

    use super::*;

    const COUNT: usize = 1 << 14;

    /// The bytes of a component as numbers around 0.
    fn converted(signal: impl Fn(usize) -> i16) -> Vec<f64> {
        let mut dither = Dither::default();
        (0..COUNT).map(|n| f64::from(dither.bytes([signal(n), 0])[0]) - 128.0).collect()
    }

    #[test]
    fn a_level_below_one_step_stays_in_the_mean_and_the_noise_is_the_same_everywhere() {
        for level in [-300, -128, -64, 0, 1, 100, 128, 200, 1000] {
            let values = converted(|_| level);
            let mean = values.iter().sum::<f64>() / COUNT as f64;
            assert!((mean - f64::from(level) / 256.0).abs() < 0.02, "{level}: {mean}");
            let power = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>();
            assert!((power / COUNT as f64 - 0.25).abs() < 0.02, "{level}: {power}");
        }
    }

    #[test]
    fn the_ends_of_the_range_do_not_wrap() {
        let mut dither = Dither::default();
        for _ in 0..1000 {
            let [low, high] = dither.bytes([i16::MIN, i16::MAX]);
            assert!(low <= 1 && high >= 254, "{low} {high}");
        }
    }

    #[test]
    fn a_weak_tone_has_no_harmonics() {
        // Three steps high, 41 periods in the block.
        let tone = |n: usize| (TAU * 41.0 * n as f64 / COUNT as f64).sin();
        let level = |values: &[f64], times: usize| {
            let turn = |n: usize| TAU * 41.0 * (times * n) as f64 / COUNT as f64;
            let part = |f: fn(f64) -> f64| {
                let sum = values.iter().enumerate().map(|(n, v)| v * f(turn(n))).sum::<f64>();
                2.0 * sum / COUNT as f64
            };
            part(f64::sin).hypot(part(f64::cos))
        };
        let values = converted(|n| (3.0 * 256.0 * tone(n)).round() as i16);
        assert!((level(&values, 1) - 3.0).abs() < 0.03);
        // The noise of a bin has a mean of 0.01; rounding alone makes 0.1 and more.
        let rounded: Vec<f64> = (0..COUNT).map(|n| (3.0 * tone(n)).round()).collect();
        let worst = |values: &[f64]| (2..12).map(|times| level(values, times)).fold(0.0, f64::max);
        assert!(worst(&values) < 0.03, "{}", worst(&values));
        assert!(worst(&rounded) > 0.05, "{}", worst(&rounded));
    }
}
