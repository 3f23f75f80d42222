//! Multiplies by a constant.

use crate::{Block, BlockError, Context, In, Item, Out, PortVisitor, Work};
use std::ops::Mul;

/// Multiplies every item by a constant.
///
/// Ports: `in`, `out`.
#[derive(Debug)]
pub struct MultiplyConst<T: Item> {
    /// Items.
    pub input: In<T>,
    /// Items times `factor`.
    pub output: Out<T>,
    factor: T,
}

impl<T: Item + Mul<Output = T>> MultiplyConst<T> {
    /// Multiplies by `factor`.
    #[must_use]
    pub fn new(factor: T) -> Self {
        Self { input: In::new(), output: Out::new(), factor }
    }
}

impl<T: Item + Mul<Output = T>> Block for MultiplyConst<T> {
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
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Mock;
    use num_complex::Complex;

    #[test]
    fn multiplies_complex_numbers() {
        let mut mock = Mock::new(MultiplyConst::new(Complex::new(0.0f32, 2.0)));
        mock.feed("in", &[Complex::new(1.0f32, 0.0), Complex::new(0.0, 1.0)]);
        mock.run().unwrap();
        let expected = [Complex::new(0.0f32, 2.0), Complex::new(-2.0, 0.0)];
        assert_eq!(mock.take::<Complex<f32>>("out"), expected);
    }
}
