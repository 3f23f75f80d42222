//! Complex samples from their parts.

use crate::Sample;
use millstream_flow::copied_ns;
use millstream_flow::registry::BlockParameters;
use millstream_flow::{Block, BlockError, BlockFacts, Context, In, Out, Ports, Work};

/// Joins two streams of floats to complex samples.
///
/// Ports: `re`, `im`; `out`.
#[derive(Debug, Default, Ports)]
pub struct FloatsToComplex {
    /// Real parts.
    pub re: In<f32>,
    /// Imaginary parts.
    pub im: In<f32>,
    /// Samples.
    pub output: Out<Sample>,
}

impl Block for FloatsToComplex {
    fn work(&mut self, _: &mut Context) -> Result<Work, BlockError> {
        let (re, im, output) = (self.re.slice(), self.im.slice(), self.output.slice_mut());
        let items = re.len().min(im.len()).min(output.len());
        for (to, (re, im)) in output[..items].iter_mut().zip(re.iter().zip(im)) {
            *to = Sample::new(*re, *im);
        }
        self.re.consume(items);
        self.im.consume(items);
        self.output.produce(items);
        Ok(Work::Continue)
    }

    fn facts(&self, facts: &mut BlockFacts) {
        facts.ns_per_item(copied_ns::<Sample>());
    }
}

/// Splits complex samples into two streams of floats.
///
/// Ports: `in`; `re`, `im`.
#[derive(Debug, Default, Ports)]
pub struct ComplexToFloats {
    /// Samples.
    pub input: In<Sample>,
    /// Real parts.
    pub re: Out<f32>,
    /// Imaginary parts.
    pub im: Out<f32>,
}

impl Block for ComplexToFloats {
    fn work(&mut self, _: &mut Context) -> Result<Work, BlockError> {
        let (input, re, im) = (self.input.slice(), self.re.slice_mut(), self.im.slice_mut());
        let items = input.len().min(re.len()).min(im.len());
        for (from, (re, im)) in input[..items].iter().zip(re.iter_mut().zip(im)) {
            (*re, *im) = (from.re, from.im);
        }
        self.input.consume(items);
        self.re.produce(items);
        self.im.produce(items);
        Ok(Work::Continue)
    }

    fn facts(&self, facts: &mut BlockFacts) {
        facts.ns_per_item(copied_ns::<Sample>());
    }
}

/// Makes complex samples of real and imaginary parts.
#[derive(BlockParameters)]
#[block(floats_to_complex, pure)]
struct FloatsToComplexParameters {}

impl FloatsToComplexParameters {
    fn make(self) -> FloatsToComplex {
        FloatsToComplex::default()
    }
}

/// Splits samples into real and imaginary parts.
#[derive(BlockParameters)]
#[block(complex_to_floats, pure)]
struct ComplexToFloatsParameters {}

impl ComplexToFloatsParameters {
    fn make(self) -> ComplexToFloats {
        ComplexToFloats::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use millstream_flow::Mock;

    #[test]
    fn parts_come_together_and_apart() {
        let mut join = Mock::new(FloatsToComplex::default());
        join.feed("re", &[1.0f32, 2.0, 3.0]);
        join.feed("im", &[-1.0f32, -2.0]);
        join.run().unwrap();
        let samples = join.take::<Sample>("out");
        assert_eq!(samples, [Sample::new(1.0, -1.0), Sample::new(2.0, -2.0)]);
        let mut split = Mock::new(ComplexToFloats::default());
        split.feed("in", &samples);
        split.run().unwrap();
        assert_eq!(split.take::<f32>("re"), [1.0, 2.0]);
        assert_eq!(split.take::<f32>("im"), [-1.0, -2.0]);
    }
}
