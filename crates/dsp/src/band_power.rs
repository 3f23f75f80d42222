//! Power within a band, for measurements.

use crate::Sample;
use crate::window::Window;
use rustfft::FftPlanner;
use std::ops::Range;

/// Samples of a spectrum.
const LEN: usize = 4096;

/// Power of samples within bands, averaged over whole spectra; side lobes lie below -110 dB.
#[derive(Clone, Debug)]
pub struct BandPower {
    /// Mean power by bin, from the lowest frequency up.
    bins: Vec<f64>,
    rate_hz: f64,
}

impl BandPower {
    /// Measures samples; a remainder of less than 4096 is left out.
    #[must_use]
    pub fn of(samples: &[Sample], rate_hz: f64) -> Self {
        let window = Window::Kaiser(16.0).periodic(LEN);
        let energy: f64 = window.iter().map(|w| w * w).sum();
        let fft = FftPlanner::new().plan_fft_forward(LEN);
        let (mut bins, mut block) = (vec![0.0; LEN], vec![Sample::default(); LEN]);
        let blocks = samples.chunks_exact(LEN);
        let scale = 1.0 / (blocks.len().max(1) as f64 * energy * LEN as f64);
        for samples in blocks {
            let windowed = samples.iter().zip(&window).map(|(x, w)| x * *w as f32);
            block.iter_mut().zip(windowed).for_each(|(to, x)| *to = x);
            fft.process(&mut block);
            for (bin, x) in block.iter().enumerate() {
                bins[(bin + LEN / 2) % LEN] += scale * f64::from(x.norm_sqr());
            }
        }
        Self { bins, rate_hz }
    }

    /// Returns the sum of the mean power of the bins in a band.
    #[must_use]
    pub fn within(&self, band_hz: Range<f64>) -> f64 {
        let hz = |bin: usize| (bin as f64 - (LEN / 2) as f64) * self.rate_hz / LEN as f64;
        let bins = self.bins.iter().enumerate();
        bins.filter(|(bin, _)| band_hz.contains(&hz(*bin))).map(|(_, power)| power).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::noise::Noise;

    #[test]
    fn a_tone_and_noise_have_their_power_in_their_bands() {
        let mut noise = Noise::new(1);
        let samples: Vec<Sample> = (0..40 * LEN)
            .map(|n| {
                let turn = 0.2 * std::f64::consts::TAU * n as f64;
                Sample::from_polar(2.0, (turn % std::f64::consts::TAU) as f32)
                    + noise.gaussian_pair() * 0.1
            })
            .collect();
        let power = BandPower::of(&samples, 1e6);
        assert!((power.within(195e3..205e3) - 4.0).abs() < 0.01);
        // Two parts of 0.01 each over 1 MHz.
        let low = power.within(-300e3..-100e3);
        assert!((low - 0.02 * 0.2).abs() < 0.0003, "{low}");
        assert_eq!(BandPower::of(&samples[..5], 1e6).within(-5e5..5e5), 0.0);
    }
}
