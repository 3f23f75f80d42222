//! Multiplication by a constant.

use crate::Sample;
use millstream_dsp::scale::Scaled;
use millstream_flow::copied_ns;
use millstream_flow::registry::BlockParameters;
use millstream_flow::{BlockError, BlockFacts, Item, ParameterKind, ParameterValue};
use millstream_flow::{BlockMemory, Each, OneToOne};

/// An item that can be a factor, and be multiplied by one.
pub trait Factor: Item + Scaled + From<f32> {}

impl Factor for f32 {}

impl Factor for Sample {}

/// Returns a number as a factor; `None` if an item cannot hold it.
fn factor<T: Factor>(number: f64) -> Option<T> {
    Some(number as f32).filter(|factor| factor.is_finite()).map(T::from)
}

/// Multiplies every item by a constant.
///
/// # Messages
/// `factor`.
#[derive(Debug)]
pub struct MultiplyConst<T> {
    factor: T,
}

impl<T: Factor> MultiplyConst<T> {
    /// Creates a block that multiplies by `factor`.
    #[must_use]
    pub fn new(factor: T) -> Self {
        Self { factor }
    }
}

impl<T: Factor> OneToOne for MultiplyConst<T> {
    type Input = T;
    type Output = T;

    fn run(&mut self, input: &[T], output: &mut [T]) {
        T::scale(self.factor, input, output);
    }

    fn facts(&self, facts: &mut BlockFacts) {
        facts.ns_per_item(copied_ns::<T>()).memory(BlockMemory::none()).message(
            "factor",
            ParameterKind::Number,
            "the constant from now on",
        );
    }

    fn message(&mut self, _: &str, value: &ParameterValue) -> Result<(), BlockError> {
        let factor = value.as_number().and_then(factor);
        self.factor = factor.ok_or("expected a number that an item can hold")?;
        Ok(())
    }
}

/// Multiplies by a real constant.
#[derive(BlockParameters)]
#[block(multiply_const, pure, items(cf32, f32), example = "factor = 0.5")]
struct MultiplyConstParameters {
    /// the constant
    factor: f32,
}

impl MultiplyConstParameters {
    fn make<T: Factor>(self) -> Each<MultiplyConst<T>> {
        Each::new(MultiplyConst::new(self.factor.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use millstream_flow::Mock;

    #[test]
    fn multiplies_complex_numbers() {
        let mut mock = Mock::new(Each::new(MultiplyConst::new(Sample::new(0.0, 2.0))));
        mock.feed("in", &[Sample::new(1.0, 0.0), Sample::new(0.0, 1.0)]);
        mock.run().unwrap();
        let expected = [Sample::new(0.0, 2.0), Sample::new(-2.0, 0.0)];
        assert_eq!(mock.take::<Sample>("out"), expected);
    }

    #[test]
    fn another_factor_holds_from_the_next_call() {
        let mut mock = Mock::new(Each::new(MultiplyConst::new(2.0f32)));
        mock.feed("in", &[1.0f32]);
        mock.run().unwrap();
        mock.send("factor", 3.0).unwrap();
        mock.feed("in", &[1.0f32]);
        mock.run().unwrap();
        assert_eq!(mock.take::<f32>("out"), [2.0, 3.0]);
        assert!(mock.send("factor", 1e300).unwrap_err().to_string().contains("can hold"));
    }

    #[test]
    fn a_factor_that_an_item_cannot_hold_is_refused() {
        let registry = crate::registry();
        let error = registry.make("multiply_const", "factor = 1e300").err().unwrap();
        assert!(
            error.to_string().ends_with("expected a number that a 32-bit float can hold"),
            "{error}"
        );
    }
}
