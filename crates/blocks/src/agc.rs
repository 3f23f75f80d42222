//! Automatic gain control.

use crate::Sample;
use crate::common::{each, number};
use millstream_dsp::recursion::next_state;
use millstream_flow::registry::BlockParameters;
use millstream_flow::{BlockError, BlockFacts, Gauge, Item, ParameterKind, ParameterValue};
use millstream_flow::{Each, OneToOne};
use std::ops::Mul;

/// An item with a magnitude.
pub trait Magnitude: Item + Default + Mul<f32, Output = Self> {
    /// Returns `|x|`.
    fn magnitude(self) -> f32;
}

impl Magnitude for f32 {
    fn magnitude(self) -> f32 {
        self.abs()
    }
}

impl Magnitude for Sample {
    fn magnitude(self) -> f32 {
        self.norm_sqr().sqrt()
    }
}

/// Brings the magnitude to `reference`: `y = g · x`, then `g += speed · (reference - |y|)`, limited
/// to 0 to `gain_max`. It settles in about `1 / (speed · |x|)` samples.
///
/// # Messages
/// `reference`, `gain`.
///
/// # Metrics
/// `gain`.
#[derive(Debug)]
pub struct Agc<T> {
    reference: f32,
    speed: f32,
    gain_max: f32,
    gain: f32,
    shown: Gauge,
    items: std::marker::PhantomData<T>,
}

impl<T> Agc<T> {
    /// Creates a control with an initial gain of 1.
    #[must_use]
    pub fn new(reference: f32, speed: f32, gain_max: f32) -> Self {
        let (gain, shown) = (gain_max.min(1.0), Gauge::new());
        Self { reference, speed, gain_max, gain, shown, items: std::marker::PhantomData }
    }
}

impl<T: Magnitude> OneToOne for Agc<T> {
    type Input = T;
    type Output = T;

    fn run(&mut self, input: &[T], output: &mut [T]) {
        let (mut gain, reference, speed) = (self.gain, self.reference, self.speed);
        each(input, output, |x: T| {
            let y = x * gain;
            let next = gain + speed * (reference - y.magnitude());
            gain = next_state(next, gain).clamp(0.0, self.gain_max);
            y
        });
        self.gain = gain;
        self.shown.set(f64::from(gain));
    }

    fn facts(&self, facts: &mut BlockFacts) {
        facts
            .ns_per_item(12.0)
            .message("reference", ParameterKind::Number, "magnitude to reach")
            .message("gain", ParameterKind::Number, "gain from which it continues")
            .metric("gain", &self.shown);
    }

    fn message(&mut self, name: &str, value: &ParameterValue) -> Result<(), BlockError> {
        let x = number(value)? as f32;
        if !(x >= 0.0 && x.is_finite()) {
            return Err(format!("{name} = {x}: expected zero or more").into());
        }
        match name {
            "reference" => self.reference = x,
            _ => self.gain = x.min(self.gain_max),
        }
        Ok(())
    }
}

/// Automatic gain control: brings the magnitude to a reference.
#[derive(BlockParameters)]
#[block(agc, pure, items(cf32, f32))]
struct AgcParameters {
    /// magnitude to reach
    #[parameter(default = 1.0, above = 0)]
    reference: f32,
    /// change of the gain per sample, divided by the error
    #[parameter(default = 1e-4, above = 0)]
    speed: f32,
    /// the largest gain
    #[parameter(default = 65_536.0, above = 0)]
    gain_max: f32,
}

impl AgcParameters {
    fn make<T: Magnitude>(self) -> Each<Agc<T>> {
        Each::new(Agc::new(self.reference, self.speed, self.gain_max))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use millstream_flow::Mock;

    #[test]
    fn the_loop_follows_its_equation_to_the_reference() {
        let mut mock = Mock::new(Each::new(Agc::<Sample>::new(0.5, 1e-2, 100.0)));
        let x = Sample::new(0.03, 0.04);
        mock.feed("in", &vec![x; 20_000]);
        mock.run().unwrap();
        let out = mock.take::<Sample>("out");
        // |x| = 0.05: the gain tends to 10 with a time constant of 1 / (0.01 · 0.05) = 2000.
        for n in [0, 500, 2000, 6000, 19_999] {
            let gain = 10.0 - 9.0 * (1.0 - 0.01 * 0.05f64).powi(n as i32);
            assert!((f64::from(out[n].norm()) - 0.05 * gain).abs() < 1e-4, "{n}: {}", out[n]);
        }
    }

    #[test]
    fn a_sample_that_is_no_number_does_not_stay() {
        let mut mock = Mock::new(Each::new(Agc::<f32>::new(1.0, 0.1, 10.0)));
        mock.feed("in", &[f32::NAN, f32::INFINITY, 1.0, 1.0]);
        mock.run().unwrap();
        assert!(mock.take::<f32>("out")[2..].iter().all(|x| x.is_finite()));
    }
}
