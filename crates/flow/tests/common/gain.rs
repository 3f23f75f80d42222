//! A block with a parameter and a message.

use millstream_flow::registry::{BlockParameters, Registry};
use millstream_flow::{
    Block, BlockError, BlockFacts, Complex, Context, In, Item, Out, ParameterKind, ParameterValue,
    Ports, Work,
};
use std::ops::Mul;

/// Multiplies by a number, which the message `factor` changes.
#[derive(Ports)]
pub struct Gain<T: Item> {
    input: In<T>,
    output: Out<T>,
    factor: f32,
}

impl<T: Item> Gain<T> {
    pub fn new(factor: f32) -> Self {
        Self { input: In::new(), output: Out::new(), factor }
    }
}

impl<T: Item + Mul<f32, Output = T>> Block for Gain<T> {
    fn work(&mut self, _: &mut Context) -> Result<Work, BlockError> {
        let (input, output) = (self.input.slice(), self.output.slice_mut());
        let items = input.len().min(output.len());
        for (to, from) in output.iter_mut().zip(input) {
            *to = *from * self.factor;
        }
        self.input.consume(items);
        self.output.produce(items);
        Ok(Work::Continue)
    }

    fn facts(&self, facts: &mut BlockFacts) {
        facts.message("factor", ParameterKind::Number, "the factor from now on");
    }

    fn message(&mut self, _: &str, value: &ParameterValue) -> Result<(), BlockError> {
        self.factor = value.as_number().ok_or("expected a number")? as f32;
        Ok(())
    }
}

/// Multiplies by a number.
#[derive(BlockParameters)]
#[block(gain, pure, example = "factor = 2.0")]
struct GainParameters {
    /// the number
    factor: f32,
}

impl GainParameters {
    fn make(self) -> Gain<Complex<f32>> {
        Gain::new(self.factor)
    }
}

/// The builtin types, and `gain` for complex samples.
pub fn registry() -> Registry {
    let mut registry = Registry::builtin();
    registry.register_crate(module_path!());
    registry
}
