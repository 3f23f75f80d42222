//! Quantises samples to 16 bits: rotated, corrected, and at a level with head room and resolution.

use super::balance::Balance;
use super::carrier::{CarrierLoop, CarrierObservation, SampleScaling};
use super::level_tolerance::{Beside, LevelTolerance};
use crate::Sample;
use millstream_dsp::rotation::counts;
use millstream_dsp::sampler::IntSample;

/// Root mean square of quantised samples: 24 dB below the largest, and rounding is 76 dB below.
const RMS: f64 = 2048.0;

/// Quantises samples to 16 bits, and stores those that are still needed.
#[derive(Clone, Debug)]
pub struct Quantiser {
    carrier: CarrierLoop,
    balance: Balance,
    row: Vec<IntSample>,
    /// The integer value of 1.0; `None` before the first samples that are not all silent.
    one: Option<f64>,
    patience: LevelTolerance,
}

impl Quantiser {
    /// Creates a quantiser in its initial state.
    #[must_use]
    pub fn new(carrier: CarrierLoop) -> Self {
        Self {
            carrier,
            balance: Balance::new(),
            row: Vec::new(),
            one: None,
            patience: LevelTolerance::default(),
        }
    }

    /// Returns the loop that rotates samples.
    #[must_use]
    pub fn carrier(&self) -> &CarrierLoop {
        &self.carrier
    }

    /// Restarts the carrier's pull-in after an interruption of the signal.
    pub fn reacquire(&mut self) {
        self.carrier.reacquire();
    }

    /// Returns the number of stored samples.
    #[must_use]
    pub fn kept(&self) -> usize {
        self.row.len()
    }

    /// Returns the stored samples and the integer value of 1.0; `None` while all samples were
    /// silent, because silence has no level.
    #[must_use]
    pub fn row(&self) -> Option<(&[IntSample], f64)> {
        self.one.map(|one| (self.row.as_slice(), one))
    }

    /// Drops the first stored samples.
    pub fn drop_first(&mut self, count: usize) {
        self.row.drain(..count);
    }

    /// Takes samples, with a signal to follow unless `held`; returns how many were not finite
    /// numbers and were replaced by zero.
    pub fn push(&mut self, samples: &[Sample], held: bool) -> usize {
        let trim = self.balance.measure(samples);
        let Some(one) = self.one.or_else(|| one_for(mean_power(samples))) else {
            // Silence before the first signal is not stored.
            return samples.iter().filter(|x| !counts(**x)).count();
        };
        self.one = Some(one);
        let start = self.row.len();
        self.row.resize(start + samples.len(), [0; 2]);
        let scaling = SampleScaling { trim, one: one as f32, held };
        let CarrierObservation { bad, power } =
            self.carrier.rotate(samples, scaling, &mut self.row[start..]);
        if !held {
            self.watch(f64::from(power), samples.len(), one);
        }
        bad
    }

    /// Changes the level when it was out of bounds for long enough.
    fn watch(&mut self, power: f64, samples: usize, one: f64) {
        let power = power / samples.max(1) as f64;
        if self.patience.judge(power.sqrt() * one / RMS, samples) == Beside::Moved {
            if let Some(new) = one_for(power) {
                self.set_level(new / one);
                self.one = Some(new);
            }
        }
    }

    /// Multiplies the stored samples by `ratio`.
    fn set_level(&mut self, ratio: f64) {
        for part in self.row.as_flattened_mut() {
            *part = (f64::from(*part) * ratio).round() as i16;
        }
    }
}

/// Returns the integer value of 1.0 that brings samples of this mean square to their level; `None`
/// for silence.
fn one_for(power: f64) -> Option<f64> {
    let one = RMS / power.sqrt();
    (one as f32).is_normal().then_some(one)
}

/// Returns the mean square of the samples that are numbers.
fn mean_power(samples: &[Sample]) -> f64 {
    let square = |x: &Sample| f64::from(x.re).powi(2) + f64::from(x.im).powi(2);
    let sum: f64 = samples.iter().filter(|x| counts(**x)).map(square).sum();
    sum / samples.len().max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use millstream_dsp::noise::Noise;

    fn quantiser() -> Quantiser {
        Quantiser::new(CarrierLoop::new(0.0, 6.25e6))
    }

    fn rms(row: &[IntSample]) -> f64 {
        let parts = row.as_flattened().iter().map(|x| f64::from(*x).powi(2));
        (parts.sum::<f64>() / row.len() as f64).sqrt()
    }

    #[test]
    fn the_level_follows_what_lasts_and_nothing_else() {
        let (mut noise, mut quantiser) = (Noise::new(3), quantiser());
        let mut run = |level: f32, chunks: usize| {
            for _ in 0..chunks {
                let samples: Vec<Sample> =
                    (0..2048).map(|_| noise.gaussian_pair() * level).collect();
                quantiser.drop_first(quantiser.kept());
                quantiser.push(&samples, false);
            }
            let (row, one) = quantiser.row().unwrap();
            (rms(row), one)
        };
        let (level, one) = run(1e-3, 10);
        assert!((level / RMS - 1.0).abs() < 0.1, "{level}");
        // An impulse, and a short fade.
        assert_eq!(run(1.0, 2).1, one);
        assert_eq!(run(1e-3, 1).1, one);
        assert_eq!(run(1e-6, 20).1, one);
        assert_eq!(run(1e-3, 1).1, one);
        for level in [0.5, 1e-5] {
            let (level, _) = run(level, 50);
            assert!((level / RMS - 1.0).abs() < 0.1, "{level}");
        }
    }

    #[test]
    fn samples_kept_change_their_level_too() {
        let mut quantiser = quantiser();
        quantiser.push(&[Sample::new(0.01, 0.0); 64], true);
        let before = quantiser.row().unwrap().0[10][0];
        // The change counts as lasting from the fourth chunk on.
        for _ in 0..4 {
            quantiser.push(&[Sample::new(0.1, 0.0); 2048], false);
        }
        let (row, one) = quantiser.row().unwrap();
        let [re, _] = row[10];
        assert!(before > 9 * re, "{before} became {re}");
        assert!((f64::from(re) / one - 0.01).abs() < 1e-4, "{re} of {one}");
    }

    #[test]
    fn silence_is_no_level() {
        let mut quantiser = quantiser();
        for (silence, bad) in [(0.0, 0), (1e-42, 0), (f32::NAN, 2048), (f32::INFINITY, 2048)] {
            assert_eq!(quantiser.push(&[Sample::new(silence, 0.0); 2048], false), bad, "{silence}");
            assert!(quantiser.row().is_none() && quantiser.kept() == 0, "{silence}");
        }
        // A value that is not a number does not hide the other samples.
        let mut samples = [Sample::new(0.5, 0.0); 2048];
        samples[7].im = f32::NAN;
        assert_eq!(quantiser.push(&samples, false), 1);
        let (row, one) = quantiser.row().unwrap();
        assert!(row.len() == 2048 && one > 1000.0, "{one}");
    }
}
