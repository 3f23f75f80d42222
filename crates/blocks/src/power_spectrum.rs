//! Power over frequency.

use crate::common::transform_ns;
use crate::fft::{FftFrame, SIZE_MAX};
use crate::taps::{WindowName, WindowShape, narrow};
use crate::{Made, Sample};
use millstream_accel::{Kernel, OffloadParameters};
use millstream_flow::registry::BlockParameters;
use millstream_flow::{BlockFacts, Process, Through};
use millstream_flow::{ItemRatio, TagRule};
use rustfft::FftDirection;

/// Averages the power of `average` frames and puts out one frame of `size` decibels, frequency zero
/// in the middle: `10 log₁₀(mean |X[k]|² / (Σ w)²)`. So a tone of amplitude 1 in the middle of a
/// bin is at 0 dB with any window. The lower bound is -200 dB.
#[derive(Debug)]
pub struct PowerSpectrum {
    frame: FftFrame,
    work: Vec<Sample>,
    /// Of so many frames that `f32` would not do.
    sums: Vec<f64>,
    frames: u32,
    average: u32,
    scale: f64,
}

impl PowerSpectrum {
    /// Creates spectra with this window and its length.
    ///
    /// # Panics
    /// If the window is empty or `average` is zero.
    #[must_use]
    pub fn new(window: Vec<f32>, average: u32) -> Self {
        assert!(!window.is_empty() && average > 0, "a spectrum of nothing");
        let (size, sum) = (window.len(), window.iter().sum::<f32>());
        Self {
            frame: FftFrame::new(FftDirection::Forward, window),
            work: vec![Sample::default(); size],
            sums: vec![0.0; size],
            frames: 0,
            average,
            scale: 1.0 / (f64::from(sum * sum) * f64::from(average)),
        }
    }

    fn add(&mut self, input: &[Sample]) {
        self.frame.transform(input, &mut self.work);
        for (sum, x) in self.sums.iter_mut().zip(&self.work) {
            *sum += f64::from(x.norm_sqr());
        }
        self.frames += 1;
    }

    fn put(&mut self, output: &mut [f32]) {
        const LEAST: f64 = 1e-20;
        for (to, sum) in output.iter_mut().zip(&mut self.sums) {
            *to = 10.0 * ((*sum * self.scale).max(LEAST) as f32).log10();
            *sum = 0.0;
        }
        output.rotate_right(self.frame.len() / 2);
        self.frames = 0;
    }
}

impl Process for PowerSpectrum {
    type Input = Sample;
    type Output = f32;

    fn process(&mut self, input: &[Sample], output: &mut [f32]) -> (usize, usize) {
        let size = self.frame.len();
        let (mut taken, mut made) = (0, 0);
        for input in input.chunks_exact(size) {
            if self.frames + 1 == self.average && output.len() - made < size {
                break;
            }
            self.add(input);
            taken += size;
            if self.frames == self.average {
                self.put(&mut output[made..made + size]);
                made += size;
            }
        }
        (taken, made)
    }

    fn least(&self) -> (usize, usize) {
        (self.frame.len(), self.frame.len())
    }

    fn facts(&self, facts: &mut BlockFacts) {
        facts
            .rate(ItemRatio::decimate(self.average))
            .tag_rule(TagRule::Drop)
            .holds(self.frame.len() as u64 * u64::from(self.average) - 1)
            .ns_per_item(transform_ns(self.frame.len()) + 0.5);
    }
}

/// Calculates the mean power spectrum of frames, in dB.
#[derive(BlockParameters)]
#[block(power_spectrum, pure, example = "size = 1024\naverage = 16")]
struct SpectrumParameters {
    /// samples in a frame
    #[parameter(least = 1, most = SIZE_MAX)]
    size: usize,
    /// number of frames whose average is one output
    #[parameter(default = 1, least = 1)]
    average: u32,
    /// window over each frame (periodic)
    #[parameter(default = "hann")]
    window: WindowName,
    #[parameter(flatten)]
    shape: WindowShape,
    #[parameter(flatten)]
    offload: OffloadParameters,
}

impl SpectrumParameters {
    fn make(self) -> Made {
        let average = self.average;
        let window = narrow(&self.window.of(self.shape).periodic(self.size));
        let kernel = Kernel::PowerSpectrum { window: window.clone(), average: average as usize };
        self.offload
            .make::<f32>(kernel, |_| Box::new(Through::new(PowerSpectrum::new(window, average))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use millstream_dsp::noise::Noise;
    use millstream_dsp::window::Window;
    use millstream_flow::Mock;

    #[test]
    fn a_full_tone_is_at_zero_decibels_and_noise_spreads() {
        let (size, average) = (256, 64);
        let mut noise = Noise::new(3);
        let tone =
            |n: usize| Sample::from_polar(1.0, std::f32::consts::TAU * (n * 3 % 8) as f32 / 8.0);
        let x: Vec<Sample> =
            (0..size * average).map(|n| tone(n) + noise.gaussian_pair() * 0.01).collect();
        let window = narrow(&Window::Hann.periodic(size));
        let mut mock = Mock::new(Through::new(PowerSpectrum::new(window, average as u32)));
        mock.feed("in", &x);
        mock.run().unwrap();
        let out = mock.take::<f32>("out");
        assert_eq!(out.len(), size);
        let peak = 128 + 96;
        assert!(out[peak].abs() < 0.05, "{}", out[peak]);
        // Each part has 1e-4; the window makes a bin 1.5 bins wide.
        let floor: f64 = out[..200].iter().map(|db| 10f64.powf(f64::from(*db) / 10.0)).sum::<f64>();
        let expected = 2e-4 * 1.5 / size as f64;
        assert!((floor / 200.0 / expected - 1.0).abs() < 0.1, "{} {expected}", floor / 200.0);
    }

    #[test]
    fn silence_is_at_the_bottom() {
        let mut mock = Mock::new(Through::new(PowerSpectrum::new(vec![1.0; 8], 1)));
        mock.feed("in", &[Sample::default(); 8]);
        mock.run().unwrap();
        assert_eq!(mock.take::<f32>("out"), [-200.0; 8]);
    }
}
