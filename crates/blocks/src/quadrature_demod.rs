//! FM demodulation.

use crate::Sample;
use crate::common::number;
use millstream_dsp::angle::turns;
use millstream_flow::registry::BlockType;
use millstream_flow::{BlockError, MessageSpec, ParameterKind, ParameterValue, Registry};
use millstream_flow::{Process, Through};

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

impl Process for QuadratureDemod {
    type Input = Sample;
    type Output = f32;

    fn process(&mut self, input: &[Sample], output: &mut [f32]) -> (usize, usize) {
        let items = input.len().min(output.len());
        turns(self.last, &input[..items], self.gain, &mut output[..items]);
        self.last = input[..items].last().copied().unwrap_or(self.last);
        (items, items)
    }

    fn is_one_to_one(&self) -> bool {
        true
    }

    /// The frequency between two items.
    fn delay(&self) -> f64 {
        0.5
    }

    fn messages(&self) -> Vec<MessageSpec> {
        vec![MessageSpec::new("gain", ParameterKind::Number, "gain from the next item on")]
    }

    fn message(&mut self, _: &str, value: &ParameterValue) -> Result<(), BlockError> {
        self.gain = number(value)? as f32;
        Ok(())
    }

    fn ns_per_item(&self) -> f64 {
        0.8
    }
}

pub(crate) fn register(registry: &mut Registry) {
    registry.register(
        BlockType::declare(
            "quadrature_demod",
            "Demodulates FM: sends the frequency of the signal.",
        )
        .optional("gain", 1.0, "output for one radian per sample, unless a deviation is given")
        .optional("rate_hz", 1.0, "samples per second; needed with deviation_hz")
        .optional("deviation_hz", 0.0, "deviation that gives the output 1; 0: use gain")
        .example("rate_hz = 240e3\ndeviation_hz = 75e3")
        .pure(|parameters| {
            let number = |name| parameters.number(name);
            let gain = match number("deviation_hz") {
                0.0 => number("gain"),
                hz if hz > 0.0 => number("rate_hz") / (std::f64::consts::TAU * hz),
                _ => return Err(parameters.wrong("deviation_hz", "zero or more")),
            };
            Ok(Box::new(Through::new(QuadratureDemod::new(gain as f32))))
        }),
    );
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
        let mut mock = Mock::new(Through::new(QuadratureDemod::new(2.0)));
        mock.feed("in", &x);
        mock.run().unwrap();
        for (n, y) in mock.take::<f32>("out").into_iter().enumerate().skip(1) {
            assert!((f64::from(y) - 2.0 * message(n as i32)).abs() < 2e-6, "{n}: {y}");
        }
    }
}
