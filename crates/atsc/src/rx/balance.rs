//! Correction of a radio's mixer: a DC offset, and I/Q parts of unequal gain that are not at right
//! angles.
//!
//! Both are measured in the signal itself: a VSB signal in noise has zero mean, and its parts are
//! equally strong and uncorrelated. Gram-Schmidt orthogonalisation restores the second part.

use super::level_tolerance::{Beside, LevelTolerance};
use crate::Sample;
use millstream_dsp::trim::{Moments, Trim, moments};

/// Chunks that the averages span. After the first so many, one chunk in [`EVERY`] is measured. The
/// remaining image is then at -50 dB.
pub(super) const SPAN: u32 = 64;
pub(super) const EVERY: u32 = 8;

/// The largest correlation and the largest ratio of gains that are corrected.
const CROSS_MAX: f64 = 0.3;
const GAIN_MAX: f64 = 1.4;

/// The measurement of the offset and the imbalance.
#[derive(Clone, Debug, Default)]
pub struct Balance {
    mean: Moments,
    measured: u32,
    seen: u32,
    patience: LevelTolerance,
}

impl Balance {
    /// Creates the measurement in its initial state.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Measures a chunk of samples; returns the correction for it and the following ones.
    pub fn measure(&mut self, chunk: &[Sample]) -> Trim {
        self.seen = self.seen.wrapping_add(1);
        if self.measured < SPAN || self.seen % EVERY == 0 {
            self.take(&moments(chunk), chunk.len());
        }
        self.trim()
    }

    fn take(&mut self, now: &Moments, samples: usize) {
        let power = |m: &Moments| m.power_re + m.power_im;
        // Skips silence and samples that are not numbers.
        if !(power(now) > 0.0 && power(now).is_finite()) {
            return;
        }
        if self.measured > 0 {
            let ratio = (power(now) / power(&self.mean)).sqrt();
            match self.patience.judge(ratio, samples) {
                Beside::Near | Beside::Below => {}
                Beside::Above => return,
                Beside::Moved => self.measured = 0,
            }
        }
        self.measured = (self.measured + 1).min(SPAN);
        self.mean.approach(now, 1.0 / f64::from(self.measured));
    }

    fn trim(&self) -> Trim {
        let Moments { re, im, power_re, power_im, product } = self.mean;
        let (power_re, power_im) = (power_re - re * re, power_im - im * im);
        if power_re <= 0.0 || power_im <= 0.0 {
            return Trim::default();
        }
        let cross = ((product - re * im) / power_re).clamp(-CROSS_MAX, CROSS_MAX);
        let rest = (power_im - cross * cross * power_re).max(f64::MIN_POSITIVE);
        let gain = (power_re / rest).sqrt().clamp(1.0 / GAIN_MAX, GAIN_MAX);
        Trim {
            offset: Sample::new(re as f32, im as f32),
            gain: gain as f32,
            cross: (gain * cross) as f32,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use millstream_dsp::noise::Noise;

    /// Returns noise through a mixer that is 1 dB and 5 degrees off, with an offset.
    fn spoilt(noise: &mut Noise) -> Sample {
        let x = noise.gaussian_pair() * 0.1;
        Sample::new(x.re + 0.02, 0.89 * (x.im * 0.996 + x.re * 0.087) - 0.03)
    }

    #[test]
    fn offset_and_imbalance_are_found_and_removed() {
        let (mut noise, mut balance) = (Noise::new(1), Balance::new());
        let mut trim = Trim::default();
        for _ in 0..200 {
            let chunk: Vec<Sample> = (0..2048).map(|_| spoilt(&mut noise)).collect();
            trim = balance.measure(&chunk);
        }
        let mut left = Sample::ZERO;
        let (mut image, mut power) = (Sample::ZERO, 0.0);
        for _ in 0..400_000 {
            let x = spoilt(&mut noise) - trim.offset;
            let x = Sample::new(x.re, x.im * trim.gain - x.re * trim.cross);
            left += x / 400_000.0;
            image += x * x;
            power += x.norm_sqr();
        }
        assert!(left.norm() < 0.001, "{left}");
        assert!(image.norm() / power < 0.012, "an image of {}", image.norm() / power);
    }

    #[test]
    fn a_signal_that_comes_on_later_is_corrected_as_well_as_one_from_the_start() {
        // The input before it is so weak that its parts are one bit, now and then.
        let (mut noise, mut balance) = (Noise::new(3), Balance::new());
        let mut faint = || Sample::new((noise.gaussian() / 2.0).round() / 32_768.0, 0.0);
        for chunks in [1, 70] {
            for _ in 0..chunks {
                let chunk: Vec<Sample> = (0..2048).map(|_| faint()).collect();
                balance.measure(&chunk);
            }
            let mut noise = Noise::new(4);
            let mut trims = (0..200).map(|_| {
                let chunk: Vec<Sample> = (0..2048).map(|_| spoilt(&mut noise)).collect();
                balance.measure(&chunk)
            });
            let Trim { offset, gain, cross } = trims.nth(199).unwrap();
            // The impairments of `spoilt`.
            let near = |x: f32, exact: f32| (x - exact).abs() < 0.01;
            assert!(near(offset.re, 0.02) && near(offset.im, -0.03), "{chunks}: {offset}");
            assert!(near(gain, 1.13) && near(cross, 0.088), "{chunks}: {gain} {cross}");
        }
    }

    #[test]
    fn silence_accidents_and_what_is_no_number_do_not_count() {
        let (mut noise, mut balance) = (Noise::new(2), Balance::new());
        let mut good = || (0..2048).map(|_| spoilt(&mut noise)).collect::<Vec<Sample>>();
        let before = (0..70).map(|_| balance.measure(&good())).last().unwrap();
        for wild in [0.0, f32::NAN, 1e9, f32::MAX] {
            for _ in 0..8 {
                assert_eq!(balance.measure(&[Sample::new(wild, 0.0); 2048]), before, "{wild}");
            }
        }
    }
}
