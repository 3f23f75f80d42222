//! FM demodulation.

use crate::Sample;
use crate::common::number;
use millstream_dsp::angle::turns;
use millstream_flow::registry::BlockParameters;
use millstream_flow::{BlockError, BlockFacts, ParameterKind, ParameterValue};
use millstream_flow::{Each, OneToOne};

/// Computes `y[n] = gain · arg(x[n] · conj(x[n - 1]))`, the frequency of the signal. With `gain =
/// rate / (2π · deviation)` full deviation gives ±1. The first output is 0.
///
/// # Messages
/// `gain`.
#[derive(Debug)]
pub struct QuadratureDemod {
    gain: f32,
    last: Sample,
}

impl QuadratureDemod {
    /// Creates a demodulator.
    #[must_use]
    pub fn new(gain: f32) -> Self {
        Self { gain, last: Sample::default() }
    }
}

impl OneToOne for QuadratureDemod {
    type Input = Sample;
    type Output = f32;

    fn run(&mut self, input: &[Sample], output: &mut [f32]) {
        turns(self.last, input, self.gain, output);
        self.last = input.last().copied().unwrap_or(self.last);
    }

    fn facts(&self, facts: &mut BlockFacts) {
        // The frequency between two items.
        facts.delay(0.5).ns_per_item(0.8).message(
            "gain",
            ParameterKind::Number,
            "gain from the next item on",
        );
    }

    fn message(&mut self, _: &str, value: &ParameterValue) -> Result<(), BlockError> {
        self.gain = number(value)? as f32;
        Ok(())
    }
}

/// Demodulates FM: sends the frequency of the signal.
#[derive(BlockParameters)]
#[block(quadrature_demod, pure, example = "rate_hz = 240e3\ndeviation_hz = 75e3")]
struct DemodParameters {
    /// output for one radian per sample, unless a deviation is given
    #[parameter(default = 1.0)]
    gain: f64,
    /// samples per second; needed with deviation_hz
    #[parameter(default = 1.0)]
    rate_hz: f64,
    /// deviation that gives the output 1; 0: use gain
    #[parameter(least = 0)]
    deviation_hz: Option<f64>,
}

impl DemodParameters {
    fn make(self) -> Each<QuadratureDemod> {
        let of_deviation = |hz| self.rate_hz / (std::f64::consts::TAU * hz);
        let gain = self.deviation_hz.map_or(self.gain, of_deviation);
        Each::new(QuadratureDemod::new(gain as f32))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use millstream_flow::Mock;

    #[test]
    fn what_was_modulated_comes_back() {
        let message = |n: i32| 0.3 * (0.01 * f64::from(n)).sin();
        let mut phase = 0.0;
        let mut modulate = |n| {
            phase += message(n);
            Sample::new(phase.cos() as f32, phase.sin() as f32)
        };
        let x: Vec<Sample> = (0..5000).map(&mut modulate).collect();
        let mut mock = Mock::new(Each::new(QuadratureDemod::new(2.0)));
        mock.feed("in", &x);
        mock.run().unwrap();
        for (n, y) in mock.take::<f32>("out").into_iter().enumerate().skip(1) {
            assert!((f64::from(y) - 2.0 * message(n as i32)).abs() < 2e-6, "{n}: {y}");
        }
    }
}
