//! De-emphasis of FM broadcasts.

use crate::common::each;
use millstream_dsp::recursion::next_state;
use millstream_flow::registry::BlockParameters;
use millstream_flow::{BlockError, BlockFacts};
use millstream_flow::{Each, OneToOne};

/// A low-pass with the time constant of a broadcaster's pre-emphasis: `H(s) = 1 / (1 + s τ)`, by
/// the bilinear transform with a prewarped corner.
///
/// `y[n] = b (x[n] + x[n - 1]) + a y[n - 1]`
#[derive(Debug)]
pub struct Deemphasis {
    b: f32,
    a: f32,
    last_in: f32,
    last_out: f32,
}

impl Deemphasis {
    /// Creates a filter at rest: `tau_us` is 75 in the Americas and Korea, 50 elsewhere.
    ///
    /// # Errors
    /// A time constant or rate that is not positive, or a corner above half the rate.
    pub fn new(tau_us: f64, rate_hz: f64) -> Result<Self, BlockError> {
        let corner = 0.5e6 / (tau_us * rate_hz);
        if !(tau_us > 0.0 && rate_hz > 0.0 && corner < std::f64::consts::FRAC_PI_2) {
            return Err(format!(
                "tau_us = {tau_us} at rate_hz = {rate_hz}: the corner frequency, 1/(2π τ), must \
                 be below half the rate: give a larger tau_us"
            )
            .into());
        }
        let warped = corner.tan();
        let b = (warped / (1.0 + warped)) as f32;
        let a = ((1.0 - warped) / (1.0 + warped)) as f32;
        Ok(Self { b, a, last_in: 0.0, last_out: 0.0 })
    }
}

impl OneToOne for Deemphasis {
    type Input = f32;
    type Output = f32;

    fn run(&mut self, input: &[f32], output: &mut [f32]) {
        let (mut last_in, mut last_out) = (self.last_in, self.last_out);
        each(input, output, |x| {
            last_out = next_state(self.b * (x + last_in) + self.a * last_out, last_out);
            last_in = x;
            last_out
        });
        (self.last_in, self.last_out) = (last_in, last_out);
    }

    fn facts(&self, facts: &mut BlockFacts) {
        facts.ns_per_item(2.6);
    }
}

/// Undoes the pre-emphasis of FM broadcasts.
#[derive(BlockParameters)]
#[block(deemphasis, pure, example = "rate_hz = 240e3")]
struct DeemphasisParameters {
    /// items per second
    rate_hz: f64,
    /// time constant: 50 in Europe, 75 in the Americas
    #[parameter(default = 50.0)]
    tau_us: f64,
}

impl DeemphasisParameters {
    fn make(self) -> Result<Each<Deemphasis>, BlockError> {
        Ok(Each::new(Deemphasis::new(self.tau_us, self.rate_hz)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use millstream_flow::Mock;
    use std::f64::consts::TAU;

    #[test]
    fn tones_are_weakened_as_the_time_constant_says() {
        let (tau_us, rate_hz) = (50.0, 240e3);
        for hz in [100.0, 3183.1, 10e3, 15e3] {
            let mut mock = Mock::new(Each::new(Deemphasis::new(tau_us, rate_hz).unwrap()));
            let tone = |n: u32| (TAU * hz / rate_hz * f64::from(n)).sin() as f32;
            mock.feed("in", &(0..48_000).map(tone).collect::<Vec<_>>());
            mock.run().unwrap();
            let out = mock.take::<f32>("out");
            let power: f64 = out[24_000..].iter().map(|x| f64::from(*x).powi(2)).sum();
            let gain = (power / 12_000.0).sqrt();
            let exact = 1.0 / (1.0 + (TAU * hz * tau_us * 1e-6).powi(2)).sqrt();
            assert!((gain / exact - 1.0).abs() < 0.02, "{hz} Hz: {gain} {exact}");
        }
    }

    #[test]
    fn a_corner_above_half_the_rate_is_refused() {
        let error = Deemphasis::new(1.0, 48e3).unwrap_err().to_string();
        assert!(error.starts_with("tau_us = 1 at rate_hz = 48000: the corner"), "{error}");
        assert!(Deemphasis::new(50.0, 0.0).is_err());
    }
}
