//! The receive side of a front end: gain, noise, low-pass, and a converter.
//!
//! Signals have amplitudes in units of the root of a milliwatt. At a gain of 0 dB a signal of 0 dBm
//! fills the converter, at 70 dB one of -70 dBm.

use super::Reception;
use crate::antenna::{NormalNoise, Sc16, sc16};
use crate::converter::rounded;
use millstream_dsp::Sample;

/// Thermal noise at room temperature, dBm in a hertz.
const THERMAL_DBM: f64 = -174.0;
/// Noise figure at high gain, dB, and the gain below which it rises.
const NOISE_FIGURE_DB: f64 = 3.0;
const QUIET_GAIN_DB: f64 = 50.0;
const RISE: f64 = 0.5;

/// Bits of a sample of the radio, in which those of the converter are the upper ones.
const SAMPLE_BITS: u32 = 16;

/// The front end of one channel.
pub(crate) struct Receiver {
    rate_hz: f64,
    noise: NormalNoise,
    low_pass: LowPass,
    /// The state for which the values below are.
    known: Option<Reception>,
    gain: f32,
    noise_level: f32,
    /// Full scale of the converter, and the value of its last bit in a sample.
    steps: f32,
    step: i16,
}

impl Receiver {
    /// Returns a front end whose noise has this seed, with a converter of `bits` bits.
    pub fn new(seed: u64, bits: u32) -> Self {
        Self {
            rate_hz: 1.0,
            noise: NormalNoise::new(seed),
            low_pass: LowPass::default(),
            known: None,
            gain: 0.0,
            noise_level: 0.0,
            steps: (1_u32 << (bits - 1)) as f32,
            step: 1 << (SAMPLE_BITS - bits),
        }
    }

    /// Prepares for a sample rate.
    pub fn prepare(&mut self, rate_hz: f64) {
        self.rate_hz = rate_hz;
        self.known = None;
    }

    /// Converts `signal`, which it changes; the first sample has the time `time`.
    pub fn convert(
        &mut self,
        reception: &Reception,
        time: u64,
        signal: &mut [Sample],
        out: &mut [Sc16],
    ) {
        if self.known != Some(*reception) {
            self.adopt(reception);
        }
        self.noise.add(time, self.noise_level, signal);
        self.low_pass.process(signal);
        let part = |value: f32| {
            let steps = (value * self.gain).clamp(-self.steps, self.steps - 1.0);
            rounded(steps) as i16 * self.step
        };
        for (sample, out) in signal.iter().zip(out) {
            *out = sc16(part(sample.re), part(sample.im));
        }
    }

    fn adopt(&mut self, reception: &Reception) {
        let amplitude = |db: f64| 10f64.powf(db / 20.0) as f32;
        self.gain = amplitude(reception.gain_db) * self.steps;
        let figure = NOISE_FIGURE_DB + RISE * (QUIET_GAIN_DB - reception.gain_db).max(0.0);
        self.noise_level = amplitude(THERMAL_DBM + 10.0 * self.rate_hz.log10() + figure);
        let bandwidth_hz = reception.bandwidth_hz;
        if self.known.is_none_or(|known| known.bandwidth_hz != bandwidth_hz) {
            self.low_pass = LowPass::new(bandwidth_hz / self.rate_hz);
        }
        self.known = Some(*reception);
    }
}

/// A Butterworth filter of third order.
#[derive(Debug, Default)]
struct LowPass {
    /// Coefficients of the section of first order and of that of second order; `None` passes all.
    sections: Option<([f32; 2], [f32; 3])>,
    first: Sample,
    second: [Sample; 2],
}

impl LowPass {
    /// Returns the filter that passes `width` cycles per sample, both sides together; from 1 on it
    /// passes everything.
    fn new(width: f64) -> Self {
        if width >= 1.0 {
            return Self::default();
        }
        // The bilinear transform of 1 / (s + 1) and of 1 / (s^2 + s + 1).
        let k = (std::f64::consts::FRAC_PI_2 * width).tan();
        let first = [k / (1.0 + k), (k - 1.0) / (1.0 + k)];
        let a0 = 1.0 + k + k * k;
        let second = [k * k / a0, 2.0 * (k * k - 1.0) / a0, (1.0 - k + k * k) / a0];
        let sections = Some((first.map(|x| x as f32), second.map(|x| x as f32)));
        Self { sections, ..Self::default() }
    }

    fn process(&mut self, signal: &mut [Sample]) {
        let Some(([b, a], [c, d, e])) = self.sections else { return };
        for sample in signal {
            // Both sections in transposed direct form.
            let input = *sample * b;
            let between = input + self.first;
            self.first = input - between * a;
            let input = between * c;
            let out = input + self.second[0];
            self.second[0] = input * 2.0 - out * d + self.second[1];
            self.second[1] = input - out * e;
            *sample = out;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::converter::test_signals::{amplitude_at, power_db, tone, unpacked};

    const RATE_HZ: f64 = 10e6;

    fn received(gain_db: f64, bandwidth_hz: f64, frequency: f64, dbm: f64) -> Vec<Sample> {
        let mut receiver = Receiver::new(1, 12);
        receiver.prepare(RATE_HZ);
        let reception = Reception { lo_hz: 1e9, gain_db, bandwidth_hz, antenna: None };
        let mut signal = tone(frequency, 10f64.powf(dbm / 20.0), 20_000);
        let mut out = vec![[0; 4]; signal.len()];
        receiver.convert(&reception, 0, &mut signal, &mut out);
        assert!(out.iter().flatten().step_by(2).all(|low| low & 15 == 0), "12 bits");
        unpacked(&out).iter().map(|sample| sample / 32_768.0).collect()
    }

    fn level_db(samples: &[Sample], frequency: f64) -> f64 {
        20.0 * amplitude_at(samples, frequency).log10()
    }

    #[test]
    fn the_level_follows_the_gain_until_the_converter_is_full() {
        for (gain_db, dbm) in [(10.0, -20.0), (40.0, -50.0), (60.0, -70.0)] {
            let level = level_db(&received(gain_db, 56e6, 0.1, dbm), 0.1);
            assert!((level + 10.0).abs() < 0.1, "{gain_db}: {level}");
        }
        let full = received(70.0, 56e6, 0.1, -40.0);
        assert!(power_db(&full) < 3.1, "both parts at full scale: {}", power_db(&full));
    }

    #[test]
    fn the_noise_seen_at_the_input_falls_with_the_gain() {
        let floor = |gain_db| power_db(&received(gain_db, 56e6, 0.0, -300.0)) - gain_db;
        // -174 dBm/Hz in 10 MHz with a figure of 3 dB is -101 dBm.
        assert!((floor(70.0) + 101.0).abs() < 0.3, "{}", floor(70.0));
        assert!(floor(30.0) > floor(50.0) + 5.0 && floor(50.0) > floor(70.0) - 0.5);
    }

    #[test]
    fn the_low_pass_is_3_db_down_at_half_its_bandwidth_and_falls_by_18_db_an_octave() {
        let at = |frequency| level_db(&received(40.0, 2e6, frequency, -50.0)[1000..], frequency);
        assert!((at(0.01) + 10.0).abs() < 0.1);
        assert!((at(0.1) + 13.0).abs() < 0.2, "{}", at(0.1));
        assert!((-33.0..-27.0).contains(&at(-0.2)), "{}", at(-0.2));
    }
}
