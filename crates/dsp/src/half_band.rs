//! Half-band filters: a factor of two, with every other tap zero but the middle one.
//!
//! A filter is made for pieces of a length, so that it never allocates.

use crate::Sample;
use crate::chunks::Chunks;
use crate::fir::correlate_complex;
use crate::window::kaiser;
use std::f64::consts::PI;

/// The beta of the window: the stop band lies about 75 dB below with 47 taps.
const BETA: f64 = 7.0;

/// Returns the taps off the middle of a half-band filter with `count` taps (4k + 3), whose sum is
/// one half; the middle tap is one half too.
fn side_taps(count: usize) -> Vec<f32> {
    let middle = (count / 2) as f64;
    let tap = |index: usize| {
        let x = index as f64 - middle;
        (PI * x / 2.0).sin() / (PI * x) * kaiser(x / (middle + 1.0), BETA)
    };
    let taps: Vec<f64> = (0..count).step_by(2).map(tap).collect();
    let sum: f64 = taps.iter().sum();
    taps.iter().map(|tap| (tap / sum / 2.0) as f32).collect()
}

/// Samples behind the history that a filter keeps between calls.
#[derive(Clone, Debug)]
struct Delayed {
    samples: Vec<Sample>,
    kept: usize,
}

impl Delayed {
    fn new(kept: usize, piece: usize) -> Self {
        let mut samples = Vec::with_capacity(kept + piece);
        samples.resize(kept, Sample::default());
        Self { samples, kept }
    }

    fn clear(&mut self) {
        self.samples.clear();
        self.samples.resize(self.kept, Sample::default());
    }

    fn drop_first(&mut self, count: usize) {
        self.samples.drain(..count);
    }
}

/// Halves the rate.
#[derive(Clone, Debug)]
pub struct HalfBandDecimator {
    taps: Vec<f32>,
    /// Samples with even and odd numbers; those of the middle tap, and those of the others.
    even: Delayed,
    odd: Delayed,
    /// The next sample has an odd number.
    is_odd: bool,
}

impl HalfBandDecimator {
    /// Returns a filter of `count` taps (4k + 3) without history, for pieces of `piece` samples.
    ///
    /// # Panics
    /// If there are fewer than three taps.
    #[must_use]
    pub fn new(count: usize, piece: usize) -> Self {
        let taps = side_taps(count);
        // Behind an odd sample the middle tap meets the even one `len / 2 - 1` pairs earlier.
        let even = Delayed::new(taps.len() / 2 - 1, piece);
        let odd = Delayed::new(taps.len() - 1, piece);
        Self { taps, even, odd, is_odd: false }
    }

    /// Clears the history.
    pub fn clear(&mut self) {
        self.even.clear();
        self.odd.clear();
        self.is_odd = false;
    }

    /// Filters samples; returns the number of outputs, one behind every second sample.
    ///
    /// # Panics
    /// If `out` is too short for them.
    pub fn process(&mut self, input: &[Sample], out: &mut [Sample]) -> usize {
        for sample in input {
            if self.is_odd { &mut self.odd } else { &mut self.even }.samples.push(*sample);
            self.is_odd = !self.is_odd;
        }
        let made = self.odd.samples.len() - self.odd.kept;
        let out = &mut out[..made];
        correlate_complex(&self.taps, &self.odd.samples, out);
        for (out, middle) in out.iter_mut().zip(&self.even.samples) {
            *out += middle * 0.5;
        }
        self.odd.drop_first(made);
        self.even.drop_first(made);
        made
    }
}

/// Doubles the rate.
#[derive(Clone, Debug)]
pub struct HalfBandInterpolator {
    taps: Vec<f32>,
    input: Delayed,
    sides: Vec<Sample>,
}

impl HalfBandInterpolator {
    /// Returns a filter of `count` taps (4k + 3) without history, for pieces of `piece` samples.
    ///
    /// # Panics
    /// Without taps.
    #[must_use]
    pub fn new(count: usize, piece: usize) -> Self {
        let taps: Vec<f32> = side_taps(count).iter().map(|tap| 2.0 * tap).collect();
        let input = Delayed::new(taps.len() - 1, piece);
        Self { taps, input, sides: vec![Sample::default(); piece] }
    }

    /// Clears the history.
    pub fn clear(&mut self) {
        self.input.clear();
    }

    /// Filters a piece to twice as many samples.
    ///
    /// # Panics
    /// If the piece is longer than the filter was made for.
    pub fn process(&mut self, input: &[Sample], out: &mut [Sample]) {
        self.input.samples.extend_from_slice(input);
        let sides = &mut self.sides[..input.len()];
        correlate_complex(&self.taps, &self.input.samples, sides);
        let middles = &self.input.samples[self.taps.len() / 2..];
        for ((pair, side), middle) in out.in_chunks_mut().0.iter_mut().zip(sides).zip(middles) {
            *pair = [*side, *middle];
        }
        self.input.drop_first(input.len());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_signals::{power_db, tone};

    const PIECE: usize = 4096;

    fn decimated(frequency: f64, taps: usize) -> Vec<Sample> {
        let (input, mut out) = (tone(frequency, 1.0, 4000), vec![Sample::default(); PIECE]);
        let made = HalfBandDecimator::new(taps, PIECE).process(&input, &mut out);
        assert_eq!(made, 2000);
        out[100..made].to_vec()
    }

    #[test]
    fn a_decimator_passes_the_inner_four_fifths_and_stops_what_would_fold_into_them() {
        for taps in [47, 63] {
            for frequency in [0.0, 0.1, -0.15, 0.2] {
                let level = power_db(&decimated(frequency, taps));
                assert!(level.abs() < 0.02, "{taps} {frequency}: {level} dB");
            }
            for frequency in [0.3, -0.35, 0.5] {
                let level = power_db(&decimated(frequency, taps));
                assert!(level < -70.0, "{taps} {frequency}: {level} dB");
            }
        }
    }

    #[test]
    fn an_interpolator_makes_the_tone_alone() {
        for frequency in [0.0, 0.1, -0.4] {
            let (input, mut out) = (tone(frequency, 1.0, 1000), vec![Sample::default(); 2000]);
            HalfBandInterpolator::new(47, PIECE).process(&input, &mut out);
            // The delay is 23 samples of the output.
            let want = tone(frequency / 2.0, 1.0, 2000);
            let error: Vec<_> = out[100..].iter().zip(&want[77..]).map(|(a, b)| a - b).collect();
            assert!(power_db(&error) < -65.0, "{frequency}: {} dB", power_db(&error));
        }
    }

    #[test]
    fn pieces_of_any_length_give_the_same_output() {
        let input = tone(0.07, 1.0, 1000);
        let run = |piece: usize| {
            let mut down = HalfBandDecimator::new(47, PIECE);
            let mut up = HalfBandInterpolator::new(47, PIECE);
            let (mut out, mut double) = (vec![Sample::default(); PIECE], Vec::new());
            for input in input.chunks(piece) {
                let made = down.process(input, &mut out);
                let mut pairs = vec![Sample::default(); 2 * made];
                up.process(&out[..made], &mut pairs);
                double.extend(pairs);
            }
            double
        };
        for piece in [1, 2, 7, 333] {
            let apart = run(piece).iter().zip(run(1000)).map(|(a, b)| (a - b).norm()).sum::<f32>();
            assert!(apart < 1e-3, "{piece}: {apart}");
        }
    }

    #[test]
    fn the_first_output_needs_no_more_than_two_samples() {
        let (mut filter, mut out) = (HalfBandDecimator::new(63, PIECE), [Sample::default(); 1]);
        assert_eq!(filter.process(&tone(0.0, 1.0, 2), &mut out), 1);
        filter.clear();
        assert_eq!(filter.process(&tone(0.0, 1.0, 1), &mut out), 0);
    }
}
