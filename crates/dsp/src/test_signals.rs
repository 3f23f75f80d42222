//! Signals for tests.

use crate::Sample;

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
