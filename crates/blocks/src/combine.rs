//! Sums, differences and products of several streams.

use millstream_flow::copied_ns;
use millstream_flow::registry::BlockParameters;
use millstream_flow::{Block, BlockError, BlockFacts, Context, In, Item, Out, Ports, Work};
use std::ops::{Add, Mul, Sub};

/// The combination of streams.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Operation {
    /// The sum of all.
    Add,
    /// The first minus all others.
    Subtract,
    /// The product of all.
    Multiply,
}

/// Combines streams item by item.
///
/// Ports: `in0`, `in1`, …; `out`. The block ends when one of its inputs has ended.
#[derive(Debug, Ports)]
pub struct Combine<T: Item> {
    /// Items.
    #[port("in")]
    pub inputs: Vec<In<T>>,
    /// The combined items.
    pub output: Out<T>,
    operation: Operation,
}

impl<T: Item> Combine<T> {
    /// Creates a block with this many inputs.
    #[must_use]
    pub fn new(operation: Operation, inputs: usize) -> Self {
        Self { inputs: (0..inputs).map(|_| In::new()).collect(), output: Out::new(), operation }
    }
}

impl<T> Block for Combine<T>
where
    T: Item + Add<Output = T> + Sub<Output = T> + Mul<Output = T>,
{
    fn work(&mut self, _: &mut Context) -> Result<Work, BlockError> {
        let output = self.output.slice_mut();
        let there = self.inputs.iter().map(|input| input.slice().len()).min().unwrap_or(0);
        let items = there.min(output.len());
        let output = &mut output[..items];
        for (n, input) in self.inputs.iter().enumerate() {
            let pairs = output.iter_mut().zip(&input.slice()[..items]);
            match (n, self.operation) {
                (0, _) => pairs.for_each(|(to, from)| *to = *from),
                (_, Operation::Add) => pairs.for_each(|(to, from)| *to = *to + *from),
                (_, Operation::Subtract) => pairs.for_each(|(to, from)| *to = *to - *from),
                (_, Operation::Multiply) => pairs.for_each(|(to, from)| *to = *to * *from),
            }
        }
        self.inputs.iter_mut().for_each(|input| input.consume(items));
        self.output.produce(items);
        Ok(Work::Continue)
    }

    fn facts(&self, facts: &mut BlockFacts) {
        facts.ns_per_item(copied_ns::<T>());
    }
}

/// Declares a type that combines streams.
macro_rules! combination {
    ($Parameters:ident, $name:ident, $summary:literal, $operation:expr) => {
        #[doc = $summary]
        #[derive(BlockParameters)]
        #[block($name, pure, items(cf32, f32))]
        struct $Parameters {
            /// number of inputs
            #[parameter(default = 2, least = 1, most = 64)]
            inputs: usize,
        }

        impl $Parameters {
            fn make<T: Item>(self) -> Combine<T> {
                Combine::new($operation, self.inputs)
            }
        }
    };
}

combination!(AddParameters, add, "Adds streams item by item.", Operation::Add);
combination!(
    SubtractParameters,
    subtract,
    "Subtracts the other streams from the first one.",
    Operation::Subtract
);
combination!(MultiplyParameters, multiply, "Multiplies streams item by item.", Operation::Multiply);

#[cfg(test)]
mod tests {
    use super::*;
    use millstream_flow::Mock;

    #[test]
    fn streams_are_put_together_as_far_as_all_are_there() {
        for (operation, expected) in [
            (Operation::Add, [111.0, 222.0]),
            (Operation::Subtract, [89.0, 178.0]),
            (Operation::Multiply, [1000.0, 8000.0]),
        ] {
            let mut mock = Mock::new(Combine::<f32>::new(operation, 3));
            mock.feed("in0", &[100.0f32, 200.0, 300.0]);
            mock.feed("in1", &[10.0f32, 20.0]);
            mock.feed("in2", &[1.0f32, 2.0, 3.0]);
            mock.run().unwrap();
            assert_eq!(mock.take::<f32>("out"), expected, "{operation:?}");
            assert!(!mock.is_finished());
            mock.end("in1");
            mock.run().unwrap();
            assert!(mock.is_finished());
        }
    }
}
