//! Delayed or advanced copies of the signal.

use super::{Impair, amplitude};
use crate::Sample;
use crate::fir::correlate_complex;
use crate::nco::Nco;
use crate::window::kaiser;
use std::f64::consts::PI;
use std::str::FromStr;

/// Half the length of the fractional-delay filter, and its window: flat within 0.1 % up to 0.96 of
/// half the rate.
const HALF: usize = 64;
const BETA: f64 = 6.0;

/// Samples processed together.
const BLOCK: usize = 1024;

/// The longest delay, either way, in samples.
const REACH_MAX: f64 = 1_048_576.0;

/// One echo: its delay relative to the signal, its level and its phase.
///
/// As text `DELAY:LEVEL[:PHASE[:DOPPLER]]`, for example `5.6us:-10dB:90deg:2Hz`; a negative delay
/// is an echo before the signal.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Echo {
    /// Delay, seconds; negative for an echo before the signal.
    pub delay_s: f64,
    /// Power relative to the signal, dB.
    pub level_db: f64,
    /// Phase at the first sample, degrees.
    pub phase_deg: f64,
    /// Doppler shift, Hz.
    pub doppler_hz: f64,
}

/// The error of an invalid echo.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum EchoError {
    /// The text does not have the form of an echo.
    #[error(
        "`{text}` is not an echo: write DELAY:LEVEL[:PHASE[:DOPPLER]], for example 5.6us:-10dB or \
         -1.2us:-3dB:90deg:2Hz"
    )]
    Form {
        /// The text.
        text: String,
    },
    /// The echo is too far from the signal.
    #[error(
        "an echo {delay_s} s after the signal is too late at this sample rate: give at most {} s",
        REACH_MAX / rate_hz
    )]
    Delay {
        /// The delay.
        delay_s: f64,
        /// The sample rate.
        rate_hz: f64,
    },
}

impl FromStr for Echo {
    type Err = EchoError;

    fn from_str(text: &str) -> Result<Self, EchoError> {
        let error = || EchoError::Form { text: text.to_owned() };
        let number = |text: &str| text.trim().parse().ok().filter(|x: &f64| x.is_finite());
        let parts: Vec<&str> = text.split(':').collect();
        let part = |n: usize, unit: &str| match parts.get(n) {
            None => Some(0.0),
            Some(part) => number(part.trim().strip_suffix(unit).unwrap_or(part)),
        };
        if !(2..=4).contains(&parts.len()) {
            return Err(error());
        }
        let units = [("us", 1e-6), ("µs", 1e-6), ("ms", 1e-3), ("ns", 1e-9), ("s", 1.0)];
        let delay = units
            .iter()
            .find_map(|(unit, scale)| Some(number(parts[0].trim().strip_suffix(unit)?)? * scale));
        Ok(Self {
            delay_s: delay.ok_or_else(error)?,
            level_db: part(1, "dB").ok_or_else(error)?,
            phase_deg: part(2, "deg").ok_or_else(error)?,
            doppler_hz: part(3, "Hz").ok_or_else(error)?,
        })
    }
}

/// Adds echoes to a signal, with fractional delays.
///
/// The signal itself passes unchanged, `delay` samples late. Delays that are not a
/// whole number of samples are interpolated, flat up to 0.96 of half the rate.
#[derive(Clone, Debug)]
pub struct Echoes {
    /// Past samples that echoes still need, then the current samples.
    line: Vec<Sample>,
    history: usize,
    delay: usize,
    paths: Vec<Path>,
    work: [Vec<Sample>; 2],
}

#[derive(Clone, Debug)]
struct Path {
    /// Oldest sample first.
    taps: Vec<f32>,
    /// Age of the oldest sample under the taps.
    age: usize,
    gain: Sample,
    turn: Nco,
}

impl Echoes {
    /// Creates the echoes of a signal at `rate_hz`.
    ///
    /// # Errors
    /// [`EchoError::Delay`] when one is too far away.
    pub fn new(echoes: &[Echo], rate_hz: f64) -> Result<Self, EchoError> {
        let samples = |echo: &Echo| echo.delay_s * rate_hz;
        let is_near = |echo: &&Echo| samples(echo).abs() <= REACH_MAX;
        if let Some(far) = echoes.iter().find(|echo| !is_near(echo)) {
            return Err(EchoError::Delay { delay_s: far.delay_s, rate_hz });
        }
        let needs = |echo: &Echo| {
            let delay = samples(echo);
            if is_whole(delay) { -delay } else { HALF as f64 - delay }
        };
        let delay = echoes.iter().map(needs).fold(0.0, f64::max).ceil() as usize;
        let path = |echo: &Echo| Path::new(echo, delay as f64 + samples(echo), rate_hz);
        let paths: Vec<Path> = echoes.iter().map(path).collect();
        let history = paths.iter().map(|path| path.age).fold(delay, usize::max);
        let block = vec![Sample::default(); BLOCK];
        let mut line = Vec::with_capacity(history + BLOCK);
        line.resize(history, Sample::default());
        Ok(Self { line, history, delay, paths, work: [block.clone(), block] })
    }
}

/// Returns whether a delay is within a millionth of a whole number of samples.
fn is_whole(delay: f64) -> bool {
    (delay - delay.round()).abs() < 1e-6
}

impl Path {
    fn new(echo: &Echo, delay: f64, rate_hz: f64) -> Self {
        let (age, taps) = if is_whole(delay) {
            (delay.round() as usize, vec![1.0])
        } else {
            let age = delay.floor() as usize + HALF;
            // The tap on the sample of this age.
            let tap = |older: usize| {
                let t = (age - older) as f64 - delay;
                ((PI * t).sin() / (PI * t) * kaiser(t / HALF as f64, BETA)) as f32
            };
            (age, (0..2 * HALF).map(tap).collect())
        };
        let (level, phase) = (amplitude(echo.level_db), echo.phase_deg.to_radians());
        let gain = Sample::from_polar(level as f32, phase as f32);
        Self { taps, age, gain, turn: Nco::from_hz(echo.doppler_hz, rate_hz) }
    }
}

impl Impair for Echoes {
    fn apply(&mut self, samples: &mut [Sample]) {
        let Self { line, history, delay, paths, work: [echo, turn] } = self;
        for block in samples.chunks_mut(BLOCK) {
            line.extend_from_slice(block);
            let (echo, turn) = (&mut echo[..block.len()], &mut turn[..block.len()]);
            block.copy_from_slice(&line[*history - *delay..][..block.len()]);
            for path in &mut *paths {
                correlate_complex(&path.taps, &line[*history - path.age..], echo);
                path.turn.exponential(turn);
                for ((out, echo), turn) in block.iter_mut().zip(&*echo).zip(&*turn) {
                    *out += echo * turn * path.gain;
                }
            }
            line.drain(..block.len());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE_HZ: f64 = 6.25e6;

    fn echoes(texts: &[&str]) -> Echoes {
        let echoes: Vec<Echo> = texts.iter().map(|text| text.parse().unwrap()).collect();
        Echoes::new(&echoes, RATE_HZ).unwrap()
    }

    #[test]
    fn an_impulse_comes_back_at_the_delay_with_the_level_and_the_phase() {
        let mut channel = echoes(&["16us:-6dB:90deg", "-3.2us:-20dB"]);
        let mut samples = vec![Sample::default(); 400];
        samples[50].re = 1.0;
        channel.apply(&mut samples);
        assert_eq!(channel.delay, 20);
        for (n, x) in samples.iter().enumerate() {
            let expected = match n {
                50 => Sample::new(0.1, 0.0),
                70 => Sample::new(1.0, 0.0),
                170 => Sample::new(0.0, 0.501_19),
                _ => Sample::default(),
            };
            assert!((x - expected).norm() < 1e-5, "{n}: {x}");
        }
    }

    #[test]
    fn a_part_of_a_sample_turns_a_tone_by_its_phase_even_at_the_edge_of_the_band() {
        for (delay_us, frequency_hz) in
            [(0.1, 1e6), (0.0312, 3.0e6), (1.2345, -3.0e6), (-0.777, 2.5e6)]
        {
            let mut channel = echoes(&[&format!("{delay_us}us:0dB")]);
            let at = |n: f64| {
                let turn = (frequency_hz / RATE_HZ * n).rem_euclid(1.0) * std::f64::consts::TAU;
                Sample::new(turn.cos() as f32, turn.sin() as f32)
            };
            let mut samples: Vec<Sample> = (0..4000).map(|n| at(f64::from(n))).collect();
            channel.apply(&mut samples);
            for (n, x) in samples.iter().enumerate().skip(400) {
                let n = n as f64 - channel.delay as f64;
                let expected = at(n) + at(n - delay_us * 1e-6 * RATE_HZ);
                assert!((x - expected).norm() < 2e-3, "{delay_us} {frequency_hz} {n}: {x}");
            }
        }
    }

    #[test]
    fn doppler_turns_an_echo_and_nothing_else() {
        let mut channel = echoes(&["0.16us:0dB:0deg:1250Hz"]);
        let mut samples = vec![Sample::new(1.0, 0.0); 5001];
        channel.apply(&mut samples);
        // One rotation takes 5000 samples: in phase, in antiphase, in phase.
        for (n, expected) in [(1, 2.0), (2500, 0.0), (5000, 2.0)] {
            assert!((samples[n].norm() - expected).abs() < 5e-3, "{n}: {}", samples[n]);
        }
    }

    #[test]
    fn an_echo_is_read_as_it_is_written() {
        let echo: Echo = "-1.5us:-3dB:90deg:2.5Hz".parse().unwrap();
        let expected = Echo { delay_s: -1.5e-6, level_db: -3.0, phase_deg: 90.0, doppler_hz: 2.5 };
        assert_eq!(echo, expected);
        assert_eq!("2ms:-10".parse::<Echo>().unwrap().level_db, -10.0);
        for text in ["", "5us", "5:-3dB", "us:-3dB", "5us:x", "5us:1:2:3:4", "nans:-3dB"] {
            let error = text.parse::<Echo>().unwrap_err().to_string();
            assert!(error.contains("is not an echo: write DELAY:LEVEL"), "{text}: {error}");
        }
        let far = "1s:-3dB".parse().unwrap();
        let error = Echoes::new(&[far], RATE_HZ).unwrap_err().to_string();
        assert!(error.contains("too late at this sample rate"), "{error}");
    }
}
