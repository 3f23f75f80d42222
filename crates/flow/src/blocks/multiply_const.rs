//! Multiplies by a constant.

use crate::registry::Value;
use crate::{Block, BlockError, Context, In, Item, Kind, Message, Out, PortVisitor, Work};
use num_complex::Complex;
use std::ops::Mul;

/// What can be a factor and be multiplied by one.
pub trait Factor: Item + Mul<Output = Self> {
    /// The factor that a number means; none if this type cannot hold it.
    fn from_number(number: f64) -> Option<Self>;
}

impl Factor for f32 {
    fn from_number(number: f64) -> Option<Self> {
        Some(number as f32).filter(|factor| factor.is_finite())
    }
}

impl Factor for f64 {
    fn from_number(number: f64) -> Option<Self> {
        Some(number).filter(|factor| factor.is_finite())
    }
}

impl Factor for Complex<f32> {
    fn from_number(number: f64) -> Option<Self> {
        f32::from_number(number).map(Self::from)
    }
}

impl Factor for Complex<f64> {
    fn from_number(number: f64) -> Option<Self> {
        f64::from_number(number).map(Self::from)
    }
}

/// Multiplies every item by a constant.
///
/// Ports: `in`, `out`. Messages: `factor`.
#[derive(Debug)]
pub struct MultiplyConst<T: Item> {
    /// Items.
    pub input: In<T>,
    /// Items times `factor`.
    pub output: Out<T>,
    factor: T,
}

impl<T: Factor> MultiplyConst<T> {
    /// Multiplies by `factor`.
    #[must_use]
    pub fn new(factor: T) -> Self {
        Self { input: In::new(), output: Out::new(), factor }
    }
}

impl<T: Factor> Block for MultiplyConst<T> {
    fn ports(&mut self, ports: &mut dyn PortVisitor) {
        ports.input("in", &mut self.input);
        ports.output("out", &mut self.output);
    }

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

    fn messages(&self) -> Vec<Message> {
        vec![Message::new("factor", Kind::Number, "the constant from now on")]
    }

    fn message(&mut self, _: &str, value: &Value) -> Result<(), BlockError> {
        let factor = value.as_number().and_then(T::from_number);
        self.factor = factor.ok_or("expected a number that an item can hold")?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Mock;

    #[test]
    fn multiplies_complex_numbers() {
        let mut mock = Mock::new(MultiplyConst::new(Complex::new(0.0f32, 2.0)));
        mock.feed("in", &[Complex::new(1.0f32, 0.0), Complex::new(0.0, 1.0)]);
        mock.run().unwrap();
        let expected = [Complex::new(0.0f32, 2.0), Complex::new(-2.0, 0.0)];
        assert_eq!(mock.take::<Complex<f32>>("out"), expected);
    }

    #[test]
    fn another_factor_holds_from_the_next_call() {
        let mut mock = Mock::new(MultiplyConst::new(2.0f32));
        mock.feed("in", &[1.0f32]);
        mock.run().unwrap();
        mock.send("factor", 3.0).unwrap();
        mock.feed("in", &[1.0f32]);
        mock.run().unwrap();
        assert_eq!(mock.take::<f32>("out"), [2.0, 3.0]);
        assert!(mock.send("factor", 1e300).unwrap_err().to_string().contains("can hold"));
    }
}
