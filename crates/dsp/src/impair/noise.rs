//! White noise.

use super::Impair;
use crate::Sample;
use crate::noise::Noise;

/// Adds complex Gaussian noise, white over the whole sample rate.
#[derive(Clone, Debug)]
pub struct WhiteNoise {
    noise: Noise,
    /// Standard deviation of each part.
    sigma: f32,
}

impl WhiteNoise {
    /// Creates noise of this power (mean square of the complex samples).
    #[must_use]
    pub fn new(power: f64, seed: u64) -> Self {
        Self { noise: Noise::new(seed), sigma: (power / 2.0).sqrt() as f32 }
    }
}

impl Impair for WhiteNoise {
    fn apply(&mut self, samples: &mut [Sample]) {
        for sample in samples {
            *sample += self.noise.gaussian_pair() * self.sigma;
        }
    }
}

/// Returns the power of white noise over the whole rate that gives `cn_db` between a signal of
/// `signal_power` and the noise within `bandwidth_hz`.
///
/// The noise within the bandwidth follows from its density, so the definition also holds where the
/// bandwidth is wider than the sample rate.
#[must_use]
pub fn noise_power(signal_power: f64, cn_db: f64, bandwidth_hz: f64, rate_hz: f64) -> f64 {
    signal_power * 10f64.powf(-cn_db / 10.0) * rate_hz / bandwidth_hz
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustfft::FftPlanner;

    #[test]
    fn the_noise_within_the_bandwidth_has_the_power_asked_for() {
        let (rate_hz, bandwidth_hz, signal) = (25e6, 6e6, 0.04);
        let power = noise_power(signal, 15.0, bandwidth_hz, rate_hz);
        let mut noise = WhiteNoise::new(power, 3);
        let (len, spectra) = (4096, 200);
        let fft = FftPlanner::new().plan_fft_forward(len);
        let mut within = 0.0;
        for _ in 0..spectra {
            let mut block = vec![Sample::default(); len];
            noise.apply(&mut block);
            fft.process(&mut block);
            // The middle 6 MHz, by Parseval's theorem.
            let half = (bandwidth_hz / rate_hz * len as f64 / 2.0).round() as usize;
            let bins = block[..half].iter().chain(&block[len - half..]);
            within += bins.map(|x| f64::from(x.norm_sqr())).sum::<f64>() / (len * len) as f64;
        }
        let cn_db = 10.0 * (signal / (within / f64::from(spectra))).log10();
        assert!((cn_db - 15.0).abs() < 0.05, "{cn_db} dB");
    }
}
