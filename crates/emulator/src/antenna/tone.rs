//! A complex tone.

use super::{Antenna, Sc16, quantise, sc16};

/// Entries of the wave table: the phase is cut to 16 bits, spurs stay 96 dB below the tone.
const TABLE_BITS: u32 = 16;

/// `amplitude * exp(2πi · freq · t)`, a pure function of the timestamp.
#[derive(Debug)]
pub struct ToneAntenna {
    freq_hz: f64,
    /// Phase advance per sample in 2^-64 turns.
    step: u64,
    table: Box<[Sc16]>,
}

impl ToneAntenna {
    /// A tone of `freq_hz` (may be negative) with `amplitude` in 0..=1 of full scale.
    pub fn new(freq_hz: f64, amplitude: f64) -> Self {
        let entries = 1usize << TABLE_BITS;
        let table = (0..entries)
            .map(|k| {
                let (sin, cos) = (std::f64::consts::TAU * k as f64 / entries as f64).sin_cos();
                sc16(quantise(amplitude * cos), quantise(amplitude * sin))
            })
            .collect();
        Self { freq_hz, step: 0, table }
    }
}

impl Antenna for ToneAntenna {
    fn prepare(&mut self, rate_hz: f64) {
        let turns = (self.freq_hz / rate_hz).rem_euclid(1.0);
        self.step = (turns * 2f64.powi(64)) as u64;
    }

    fn fill(&mut self, tick: u64, out: &mut [Sc16]) {
        let mut phase = tick.wrapping_mul(self.step);
        for sample in out {
            *sample = self.table[(phase >> (64 - TABLE_BITS)) as usize];
            phase = phase.wrapping_add(self.step);
        }
    }
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
