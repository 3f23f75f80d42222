//! Frequency impairments: a carrier offset, an interfering tone.

use super::Impair;
use crate::Sample;
use crate::nco::Nco;

/// Oscillator values computed together.
const BLOCK: usize = 256;

/// A shift of the signal in frequency.
#[derive(Clone, Debug)]
pub struct FrequencyShift {
    nco: Nco,
}

impl FrequencyShift {
    /// Creates a shift up by `offset_hz`.
    #[must_use]
    pub fn new(offset_hz: f64, rate_hz: f64) -> Self {
        Self { nco: Nco::from_hz(offset_hz, rate_hz) }
    }
}

impl Impair for FrequencyShift {
    fn apply(&mut self, samples: &mut [Sample]) {
        let mut turn = [Sample::default(); BLOCK];
        for block in samples.chunks_mut(BLOCK) {
            let turn = &mut turn[..block.len()];
            self.nco.exponential(turn);
            block.iter_mut().zip(turn).for_each(|(sample, turn)| *sample *= *turn);
        }
    }
}

/// An added tone.
#[derive(Clone, Debug)]
pub struct Tone {
    nco: Nco,
    amplitude: f32,
}

impl Tone {
    /// Creates a tone at `frequency_hz`, of `amplitude` (its power is the square of that).
    #[must_use]
    pub fn new(frequency_hz: f64, rate_hz: f64, amplitude: f32) -> Self {
        Self { nco: Nco::from_hz(frequency_hz, rate_hz), amplitude }
    }
}

impl Impair for Tone {
    fn apply(&mut self, samples: &mut [Sample]) {
        let mut turn = [Sample::default(); BLOCK];
        for block in samples.chunks_mut(BLOCK) {
            let turn = &mut turn[..block.len()];
            self.nco.exponential(turn);
            block.iter_mut().zip(turn).for_each(|(sample, turn)| *sample += *turn * self.amplitude);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spectrum::LineFinder;

    #[test]
    fn a_tone_appears_and_a_carrier_moves_it() {
        let rate_hz = 6.25e6;
        let mut samples = vec![Sample::default(); 4096];
        Tone::new(1e6, rate_hz, 0.5).apply(&mut samples);
        let power: f32 = samples.iter().map(Sample::norm_sqr).sum::<f32>() / 4096.0;
        assert!((power - 0.25).abs() < 1e-4, "{power}");
        FrequencyShift::new(-50e3, rate_hz).apply(&mut samples);
        let (re, im): (Vec<f32>, Vec<f32>) = samples.iter().map(|x| (x.re, x.im)).unzip();
        let line = LineFinder::new(4096).find(&re, &im, 0.15, 0.1).unwrap();
        assert!((line.frequency * rate_hz - 950e3).abs() < 30.0, "{line:?}");
    }
}
