//! A complex tone.

use super::{Antenna, Sc16, quantise, sc16};

/// Entries of the wave table: the phase is cut to 16 bits, spurs stay 96 dB below the tone.
const TABLE_BITS: u32 = 16;

/// The longest period, in samples, for which a table of whole periods is made.
const PERIOD_MAX: u64 = 1 << 16;

/// The least samples in a table, so that it is copied in large pieces.
const PIECE_SAMPLES: u64 = 1 << 13;

/// `amplitude * exp(2πi · freq · t)`, a pure function of the timestamp.
///
/// A tone that repeats after few samples is copied from a table of whole periods; other tones are
/// computed from their phase.
#[derive(Debug)]
pub struct ToneAntenna {
    freq_hz: f64,
    amplitude: f64,
    /// Phase advance per sample in 2^-64 rotations.
    step: u64,
    wave: Box<[Sc16]>,
    /// Whole periods; empty for a tone without a short period.
    periods: Box<[Sc16]>,
}

impl ToneAntenna {
    /// Returns a tone of `freq_hz` (may be negative) with `amplitude` in 0..=1 of full scale.
    pub fn new(freq_hz: f64, amplitude: f64) -> Self {
        let wave = turns(amplitude, 1, 1 << TABLE_BITS, 1 << TABLE_BITS);
        Self { freq_hz, amplitude, step: 0, wave, periods: Box::default() }
    }
}

impl Antenna for ToneAntenna {
    fn prepare(&mut self, rate_hz: f64) {
        let part = (self.freq_hz / rate_hz).rem_euclid(1.0);
        self.step = (part * 2f64.powi(64)) as u64;
        self.periods = match period(self.freq_hz, rate_hz) {
            Some((cycles, samples)) => {
                let count = samples * PIECE_SAMPLES.div_ceil(samples);
                turns(self.amplitude, cycles, samples, count)
            }
            None => Box::default(),
        };
    }

    fn fill(&mut self, tick: u64, out: &mut [Sc16]) {
        if self.periods.is_empty() {
            let mut phase = tick.wrapping_mul(self.step);
            for sample in out {
                *sample = self.wave[(phase >> (64 - TABLE_BITS)) as usize];
                phase = phase.wrapping_add(self.step);
            }
            return;
        }
        let (mut at, mut rest) = ((tick % self.periods.len() as u64) as usize, out);
        while !rest.is_empty() {
            let piece = &self.periods[at..];
            let (now, later) = rest.split_at_mut(piece.len().min(rest.len()));
            now.copy_from_slice(&piece[..now.len()]);
            (at, rest) = (0, later);
        }
    }
}

/// Returns `count` samples of a wave with `cycles` rotations in `samples` samples.
fn turns(amplitude: f64, cycles: u64, samples: u64, count: u64) -> Box<[Sc16]> {
    let sample = |index: u64| {
        let part = (u128::from(index) * u128::from(cycles) % u128::from(samples)) as f64;
        let (sin, cos) = (std::f64::consts::TAU * part / samples as f64).sin_cos();
        sc16(quantise(amplitude * cos), quantise(amplitude * sin))
    };
    (0..count).map(sample).collect()
}

/// Returns the cycles and samples after which the tone repeats exactly, if that is soon: both in
/// whole hertz.
fn period(freq_hz: f64, rate_hz: f64) -> Option<(u64, u64)> {
    let whole = |value: f64| (value.fract() == 0.0 && value.abs() < 2f64.powi(53)).then_some(value);
    let (freq, rate) = (whole(freq_hz)? as i64, whole(rate_hz)? as i64);
    let freq = freq.rem_euclid(rate) as u64;
    let (mut a, mut b) = (freq, rate as u64);
    while a != 0 {
        (a, b) = (b % a, a);
    }
    let samples = rate as u64 / b;
    (samples <= PERIOD_MAX).then_some((freq / b, samples))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quarter_rate_tone_turns_by_90_degrees() {
        let mut tone = ToneAntenna::new(250e3, 0.5);
        tone.prepare(1e6);
        let mut out = [[0; 4]; 5];
        tone.fill(8, &mut out);
        let half = quantise(0.5);
        let want = [sc16(half, 0), sc16(0, half), sc16(-half, 0), sc16(0, -half), sc16(half, 0)];
        assert_eq!(out, want);
    }

    #[test]
    fn a_short_period_is_found_and_a_long_one_is_not() {
        assert_eq!(period(1e6, 250e6), Some((1, 250)));
        assert_eq!(period(-1e6, 4e6), Some((3, 4)));
        assert_eq!(period(0.0, 5e6), Some((0, 1)));
        assert_eq!(period(3e6, 3e6), Some((0, 1)));
        assert_eq!(period(999_983.0, 250e6), None);
        assert_eq!(period(0.5, 1e6), None);
    }

    #[test]
    fn both_ways_give_the_same_wave() {
        let (freq_hz, rate_hz) = (-3e6, 25e6);
        let mut tone = ToneAntenna::new(freq_hz, 0.9);
        tone.prepare(rate_hz);
        let (mut copied, mut looked_up) = ([[0; 4]; 20_000], [[0; 4]; 20_000]);
        tone.fill(12_345_678_901, &mut copied);
        tone.periods = Box::default();
        tone.fill(12_345_678_901, &mut looked_up);
        let parts = |sample: Sc16| [[sample[0], sample[1]], [sample[2], sample[3]]];
        for (a, b) in copied.iter().zip(&looked_up) {
            for (a, b) in parts(*a).into_iter().zip(parts(*b)) {
                let apart = i16::from_le_bytes(a).abs_diff(i16::from_le_bytes(b));
                assert!(apart <= 4, "the phase of the second is cut to 16 bits");
            }
        }
    }

    #[test]
    fn the_content_depends_on_the_timestamp_only() {
        let mut tone = ToneAntenna::new(-123_456.7, 1.0);
        tone.prepare(6.25e6);
        let mut whole = [[0; 4]; 1000];
        tone.fill(u64::MAX / 3, &mut whole);
        for start in [0usize, 1, 333, 998] {
            let mut part = [[0; 4]; 2];
            tone.fill(u64::MAX / 3 + start as u64, &mut part);
            assert_eq!(part, whole[start..start + 2]);
        }
    }
}
