//! White Gaussian noise.

use super::{Antenna, Sc16, quantise, sc16};
use millstream_dsp::Sample;
use std::f64::consts::FRAC_1_SQRT_2;

/// Levels of the amplitude table.
const TABLE_BITS: u32 = 12;

/// Pairs of normally distributed values, a pure function of seed and time.
#[derive(Debug)]
struct Normal<T> {
    seed: u64,
    /// Quantiles of the distribution, at equal probability.
    table: Box<[T]>,
}

impl<T: Copy> Normal<T> {
    /// Returns those of a seed; `value` is that of a quantile of the standard distribution.
    fn new(seed: u64, value: impl Fn(f64) -> T) -> Self {
        let levels = 1usize << TABLE_BITS;
        let quantile = |k| normal_quantile((k as f64 + 0.5) / levels as f64);
        let table = (0..levels).map(|k| value(quantile(k)));
        Self { seed: mix(seed), table: table.collect() }
    }

    fn pair(&self, time: u64) -> (T, T) {
        const MASK: u64 = (1 << TABLE_BITS) - 1;
        let random = mix(time ^ self.seed);
        (self.table[(random & MASK) as usize], self.table[(random >> 32 & MASK) as usize])
    }
}

/// Complex white Gaussian noise, a pure function of seed and timestamp.
#[derive(Debug)]
pub struct NoiseAntenna(Normal<i16>);

impl NoiseAntenna {
    /// Returns noise whose complex RMS is `amplitude` of full scale.
    pub fn new(amplitude: f64, seed: u64) -> Self {
        let sigma = amplitude * FRAC_1_SQRT_2;
        Self(Normal::new(seed, |quantile| quantise(sigma * quantile)))
    }
}

impl Antenna for NoiseAntenna {
    fn prepare(&mut self, _rate_hz: f64) {}

    fn fill(&mut self, tick: u64, out: &mut [Sc16]) {
        for (k, sample) in (0..).zip(out) {
            let (i, q) = self.0.pair(tick.wrapping_add(k));
            *sample = sc16(i, q);
        }
    }
}

/// The same of power 1, as numbers.
#[derive(Debug)]
pub(crate) struct NormalNoise(Normal<f32>);

impl NormalNoise {
    /// Returns the noise of a seed.
    pub fn new(seed: u64) -> Self {
        Self(Normal::new(seed, |quantile| (quantile * FRAC_1_SQRT_2) as f32))
    }

    /// Adds the noise from `time` on, with this amplitude.
    pub fn add(&self, time: u64, amplitude: f32, samples: &mut [Sample]) {
        for (k, sample) in (0..).zip(samples) {
            let (re, im) = self.0.pair(time.wrapping_add(k));
            *sample += Sample::new(re, im) * amplitude;
        }
    }
}

/// SplitMix64's step and output function (Steele, Lea, Flood, OOPSLA 2014).
fn mix(value: u64) -> u64 {
    let mut z = value.wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// Returns the x with P(X < x) = `p` for a standard normal X, by bisection (only used to build the
/// table).
fn normal_quantile(p: f64) -> f64 {
    let (mut low, mut high) = (-6.0, 6.0);
    for _ in 0..40 {
        let mid = 0.5 * (low + high);
        if normal_cdf(mid) < p { low = mid } else { high = mid }
    }
    0.5 * (low + high)
}

/// Abramowitz and Stegun, 26.2.17: absolute error below 7.5e-8.
fn normal_cdf(x: f64) -> f64 {
    let t = 1.0 / (1.0 + 0.231_641_9 * x.abs());
    let poly = [0.319_381_530, -0.356_563_782, 1.781_477_937, -1.821_255_978, 1.330_274_429];
    let tail = poly.iter().rev().fold(0.0, |sum, c| (sum + c) * t) * (-0.5 * x * x).exp()
        / std::f64::consts::TAU.sqrt();
    if x >= 0.0 { 1.0 - tail } else { tail }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn component(sample: Sc16, at: usize) -> f64 {
        f64::from(crate::antenna::parts(sample)[at]) / 32767.0
    }

    #[test]
    fn power_mean_and_whiteness_are_right() {
        let mut out = vec![[0; 4]; 200_000];
        NoiseAntenna::new(0.2, 1).fill(1 << 40, &mut out);
        let n = out.len() as f64;
        let power = out.iter().map(|&s| component(s, 0).powi(2) + component(s, 1).powi(2));
        assert!((power.sum::<f64>() / n / 0.04 - 1.0).abs() < 0.02);
        assert!((out.iter().map(|&s| component(s, 0)).sum::<f64>() / n).abs() < 0.002);
        let lag1: f64 = out.windows(2).map(|w| component(w[0], 0) * component(w[1], 0)).sum();
        let cross: f64 = out.iter().map(|&s| component(s, 0) * component(s, 1)).sum();
        assert!((lag1 / n).abs() < 0.0004 && (cross / n).abs() < 0.0004);
    }

    #[test]
    fn the_content_depends_on_seed_and_timestamp_only() {
        let (mut a, mut b, mut other) = ([[0; 4]; 64], [[0; 4]; 32], [[0; 4]; 64]);
        NoiseAntenna::new(0.1, 7).fill(100, &mut a);
        NoiseAntenna::new(0.1, 7).fill(132, &mut b);
        NoiseAntenna::new(0.1, 8).fill(100, &mut other);
        assert_eq!(a[32..], b);
        assert_ne!(a, other);
    }
}
