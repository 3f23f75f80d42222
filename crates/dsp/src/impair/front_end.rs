//! The analogue part of a receiver, and its converters.

use super::{Impair, amplitude};
use crate::Sample;

/// A DC offset.
#[derive(Clone, Copy, Debug)]
pub struct DcOffset {
    offset: Sample,
}

impl DcOffset {
    /// Creates an offset of both parts, full scale being 1.
    #[must_use]
    pub fn new(in_phase: f32, quadrature: f32) -> Self {
        Self { offset: Sample::new(in_phase, quadrature) }
    }
}

impl Impair for DcOffset {
    fn apply(&mut self, samples: &mut [Sample]) {
        samples.iter_mut().for_each(|sample| *sample += self.offset);
    }
}

/// A quadrature branch whose gain and angle differ from those of the other branch.
///
/// It leaves an image at the mirrored frequency, at
/// `|1 - k exp(-j phase)|² / |1 + k exp(j phase)|²` of the signal's power with `k` for the gain.
#[derive(Clone, Copy, Debug)]
pub struct IqImbalance {
    /// Shares of the parts in the imaginary part.
    of_real: f32,
    of_imaginary: f32,
}

impl IqImbalance {
    /// Creates an imbalance from the gain of the quadrature branch over the other one in dB, and
    /// its angle less 90°.
    #[must_use]
    pub fn new(gain_db: f64, phase_deg: f64) -> Self {
        let (sin, cos) = phase_deg.to_radians().sin_cos();
        let gain = amplitude(gain_db);
        Self { of_real: (gain * sin) as f32, of_imaginary: (gain * cos) as f32 }
    }
}

impl Impair for IqImbalance {
    fn apply(&mut self, samples: &mut [Sample]) {
        for sample in samples {
            sample.im = self.of_real * sample.re + self.of_imaginary * sample.im;
        }
    }
}

/// A converter: rounds to a number of bits and clips at full scale, which is 1.
#[derive(Clone, Copy, Debug)]
pub struct Quantizer {
    /// Steps in full scale.
    steps: f32,
}

impl Quantizer {
    /// Creates a converter of 1 to 24 bits, sign included.
    ///
    /// # Panics
    /// If the number of bits is outside that range.
    #[must_use]
    pub fn new(bits: u32) -> Self {
        assert!((1..=24).contains(&bits), "a converter of {bits} bits");
        Self { steps: (1u32 << (bits - 1)) as f32 }
    }

    fn one(self, x: f32) -> f32 {
        // NaN becomes the lowest value.
        (x * self.steps).round_ties_even().min(self.steps - 1.0).max(-self.steps) / self.steps
    }
}

impl Impair for Quantizer {
    fn apply(&mut self, samples: &mut [Sample]) {
        for sample in samples {
            *sample = Sample::new(self.one(sample.re), self.one(sample.im));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::f64::consts::TAU;

    /// Returns the power of a line of `cycles` per sample.
    fn power_at(samples: &[Sample], cycles: f64) -> f64 {
        let (mut re, mut im) = (0.0, 0.0);
        for (n, x) in samples.iter().enumerate() {
            let (sin, cos) = (TAU * cycles * n as f64).sin_cos();
            let (i, q) = (f64::from(x.re), f64::from(x.im));
            (re, im) = (re + i * cos + q * sin, im + q * cos - i * sin);
        }
        (re * re + im * im) / (samples.len() as f64).powi(2)
    }

    fn tone(cycles: f64) -> Vec<Sample> {
        let at = |n: i32| (TAU * cycles * f64::from(n)).sin_cos();
        (0..10_000).map(at).map(|(sin, cos)| Sample::new(cos as f32, sin as f32)).collect()
    }

    #[test]
    fn an_imbalance_leaves_the_image_that_the_formula_says() {
        for (gain_db, phase_deg, image_db) in
            [(0.0, 0.0, -100.0), (1.0, 0.0, -24.81), (0.0, 3.0, -31.64), (0.5, -2.0, -29.44)]
        {
            let mut samples = tone(0.1);
            IqImbalance::new(gain_db, phase_deg).apply(&mut samples);
            let found = power_at(&samples, -0.1) / power_at(&samples, 0.1);
            let found_db = 10.0 * found.max(1e-10).log10();
            assert!((found_db - image_db).abs() < 0.1, "{gain_db} {phase_deg}: {found_db} dB");
        }
    }

    #[test]
    fn a_constant_is_added() {
        let mut samples = tone(0.1);
        DcOffset::new(0.3, -0.4).apply(&mut samples);
        assert!((power_at(&samples, 0.0) - 0.25).abs() < 1e-3);
    }

    #[test]
    fn rounding_leaves_a_twelfth_of_a_step_squared_in_each_part() {
        for bits in [8, 12] {
            let exact = tone(0.123_456_7);
            let mut samples: Vec<Sample> = exact.iter().map(|x| x * 0.9).collect();
            Quantizer::new(bits).apply(&mut samples);
            let errors = samples.iter().zip(&exact).map(|(a, b)| (a - b * 0.9).norm_sqr());
            let power = errors.map(f64::from).sum::<f64>() / exact.len() as f64;
            let step = f64::from(1 << (bits - 1)).recip();
            let ratio = power / (step * step / 6.0);
            assert!((ratio - 1.0).abs() < 0.1, "{bits} bits: {ratio}");
        }
    }

    #[test]
    fn what_is_beyond_full_scale_is_cut() {
        let mut samples = [Sample::new(3.0, -3.0), Sample::new(f32::NAN, f32::INFINITY)];
        Quantizer::new(8).apply(&mut samples);
        let top = 127.0 / 128.0;
        assert_eq!(samples[0], Sample::new(top, -1.0));
        assert!(samples[1].re.is_finite() && samples[1].im == top);
    }
}
