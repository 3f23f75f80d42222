//! Levels of a spectrum, for people to look at.

use crate::Sample;
use crate::window::hann;
use rustfft::{Fft, FftPlanner};
use std::sync::Arc;

/// The lowest level, dB: that of no power at all.
pub const LEVEL_MIN_DB: f32 = -200.0;

/// The mean power of the bins of some spectra. A complex tone of amplitude 1 that falls on a bin
/// has the level 0 dB there.
pub struct Levels {
    fft: Arc<dyn Fft<f32>>,
    window: Vec<f32>,
    work: Vec<Sample>,
    scratch: Vec<Sample>,
    sum: Vec<f32>,
    spectra: u32,
}

impl std::fmt::Debug for Levels {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Levels").field("bins", &self.bins()).finish()
    }
}

impl Levels {
    /// Creates levels of `bins` bins.
    #[must_use]
    pub fn new(bins: usize) -> Self {
        let fft = FftPlanner::new().plan_fft_forward(bins);
        let scratch = vec![Sample::default(); fft.get_inplace_scratch_len()];
        let window = hann(bins);
        // So that a tone has the same level whatever the length and the window.
        let gain: f32 = window.iter().sum();
        let window = window.into_iter().map(|point| point / gain).collect();
        let work = vec![Sample::default(); bins];
        Self { fft, window, work, scratch, sum: vec![0.0; bins], spectra: 0 }
    }

    /// Returns the number of bins, which is the number of samples of a spectrum.
    #[must_use]
    pub fn bins(&self) -> usize {
        self.window.len()
    }

    /// Adds the spectrum of `samples`; further ones than there are bins are left out.
    ///
    /// # Panics
    /// If there are fewer samples than bins.
    pub fn add(&mut self, samples: &[Sample]) {
        assert!(samples.len() >= self.bins(), "a spectrum has as many samples as bins");
        for ((work, sample), window) in self.work.iter_mut().zip(samples).zip(&self.window) {
            *work = sample * window;
        }
        self.fft.process_with_scratch(&mut self.work, &mut self.scratch);
        for (sum, bin) in self.sum.iter_mut().zip(&self.work) {
            *sum += bin.norm_sqr();
        }
        self.spectra += 1;
    }

    /// Writes the mean levels since the last call in dB, the lowest frequency first: 0 Hz is at
    /// half the number of bins. Without a spectrum they are [`LEVEL_MIN_DB`].
    pub fn take(&mut self, levels: &mut Vec<f32>) {
        let scale = 1.0 / self.spectra.max(1) as f32;
        let level = |power: &f32| {
            let db = 10.0 * (power * scale).log10();
            // Also where a sample was no number.
            if db > LEVEL_MIN_DB { db } else { LEVEL_MIN_DB }
        };
        let (positive, negative) = self.sum.split_at(self.bins().div_ceil(2));
        levels.clear();
        levels.extend(negative.iter().chain(positive).map(level));
        self.sum.fill(0.0);
        self.spectra = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tone(bin: f64, bins: usize, amplitude: f32) -> Vec<Sample> {
        let phase = |n: usize| std::f64::consts::TAU * bin * n as f64 / bins as f64;
        (0..bins).map(|n| Sample::from_polar(amplitude, phase(n) as f32)).collect()
    }

    fn levels_of(spectra: &[Vec<Sample>]) -> Vec<f32> {
        let mut levels = Levels::new(spectra[0].len());
        spectra.iter().for_each(|samples| levels.add(samples));
        let mut out = Vec::new();
        levels.take(&mut out);
        out
    }

    #[test]
    fn a_tone_has_its_level_at_its_bin() {
        for (bin, place) in [(0.0, 128), (5.0, 133), (-100.0, 28), (-128.0, 0), (127.0, 255)] {
            let levels = levels_of(&[tone(bin, 256, 1.0)]);
            assert!(levels[place].abs() < 1e-3, "{bin}: {}", levels[place]);
            let beside = (place + 1) % 256;
            assert!((levels[beside] + 6.02).abs() < 0.01, "{bin}: {}", levels[beside]);
            assert!(levels[(place + 128) % 256] < -100.0);
        }
        assert!((levels_of(&[tone(9.0, 1024, 0.01)])[521] + 40.0).abs() < 1e-3);
    }

    #[test]
    fn levels_are_means_of_power() {
        let levels = levels_of(&[tone(3.0, 64, 1.0), tone(3.0, 64, 0.0)]);
        assert!((levels[35] + 3.01).abs() < 0.01, "{}", levels[35]);
    }

    #[test]
    fn what_has_no_power_or_is_no_number_has_the_lowest_level() {
        let mut out = Vec::new();
        Levels::new(64).take(&mut out);
        assert_eq!(out, [LEVEL_MIN_DB; 64]);
        let levels = levels_of(&[vec![Sample::new(f32::NAN, 0.0); 64]]);
        assert_eq!(levels, [LEVEL_MIN_DB; 64]);
    }
}
