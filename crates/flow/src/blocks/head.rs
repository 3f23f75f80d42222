//! Passes the first items on, then ends.

use crate::{Block, BlockError, Context, In, Item, Out, PortVisitor, Work};

/// Passes the first `count` items on, then ends, and with it what only feeds it.
///
/// Ports: `in`, `out`.
#[derive(Debug)]
pub struct Head<T: Item> {
    /// Items.
    pub input: In<T>,
    /// The first of them.
    pub output: Out<T>,
    left: u64,
}

impl<T: Item> Head<T> {
    /// Passes `count` items.
    #[must_use]
    pub fn new(count: u64) -> Self {
        Self { input: In::new(), output: Out::new(), left: count }
    }
}

impl<T: Item> Block for Head<T> {
    fn ports(&mut self, ports: &mut dyn PortVisitor) {
        ports.input("in", &mut self.input);
        ports.output("out", &mut self.output);
    }

    fn work(&mut self, _: &mut Context) -> Result<Work, BlockError> {
        let (input, output) = (self.input.slice(), self.output.slice_mut());
        let left = usize::try_from(self.left).unwrap_or(usize::MAX);
        let items = input.len().min(output.len()).min(left);
        output[..items].copy_from_slice(&input[..items]);
        self.input.consume(items);
        self.output.produce(items);
        self.left -= items as u64;
        Ok(if self.left == 0 { Work::Finished } else { Work::Continue })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Mock;

    #[test]
    fn passes_exactly_the_first_items() {
        for (count, expected) in [(0, &[][..]), (2, &[1, 2]), (5, &[1, 2, 3])] {
            let mut mock = Mock::new(Head::<i32>::new(count));
            mock.feed("in", &[1, 2, 3]);
            mock.end("in");
            mock.run().unwrap();
            assert_eq!(mock.take::<i32>("out"), expected);
            assert!(mock.is_finished());
        }
    }
}
