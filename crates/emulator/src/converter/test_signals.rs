//! Signals for the tests of the converters.

use crate::antenna::Sc16;
use millstream_dsp::Sample;

/// Returns a tone with a frequency in cycles per sample.
pub(crate) fn tone(frequency: f64, amplitude: f64, count: usize) -> Vec<Sample> {
    let phase = |n: usize| std::f64::consts::TAU * (frequency * n as f64).fract();
    let sample = |n| {
        let (sin, cos) = phase(n).sin_cos();
        Sample::new((amplitude * cos) as f32, (amplitude * sin) as f32)
    };
    (0..count).map(sample).collect()
}

/// Returns the mean power in decibels.
pub(crate) fn power_db(samples: &[Sample]) -> f64 {
    let sum: f64 = samples.iter().map(|sample| f64::from(sample.norm_sqr())).sum();
    10.0 * (sum / samples.len() as f64).log10()
}

/// Returns the share of a tone in the power of samples, as amplitude.
pub(crate) fn amplitude_at(samples: &[Sample], frequency: f64) -> f64 {
    let reference = tone(frequency, 1.0, samples.len());
    let sum = samples.iter().zip(&reference).fold((0.0, 0.0), |sum, (a, b)| {
        let product = a * b.conj();
        (sum.0 + f64::from(product.re), sum.1 + f64::from(product.im))
    });
    sum.0.hypot(sum.1) / samples.len() as f64
}

/// Packs samples into 16 bits.
pub(crate) fn packed(samples: &[Sample]) -> Vec<Sc16> {
    let mut out = vec![[0; 4]; samples.len()];
    super::write(samples, 1.0, &mut out);
    out
}

/// Unpacks samples.
pub(crate) fn unpacked(samples: &[Sc16]) -> Vec<Sample> {
    let mut out = vec![Sample::default(); samples.len()];
    super::read(samples, &mut out);
    out
}
