//! Passes the first items on, then ends.

use crate::registry::BlockParameters;
use crate::value::ParameterValue;
use crate::{
    Block, BlockError, BlockFacts, Context, In, Item, Out, ParameterKind, Ports, Work, copied_ns,
};

/// Passes the first `count` items on, then ends, and with it the blocks that feed nothing else.
///
/// Ports: `in`, `out`. Messages: `more`.
#[derive(Debug, Ports)]
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
        // Ending needs neither an item nor room for one.
        let least = usize::from(count > 0);
        let (input, output) = (In::with_min_items(least), Out::with_min_items(least));
        Self { input, output, left: count }
    }
}

impl<T: Item> Block for Head<T> {
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

    fn facts(&self, facts: &mut BlockFacts) {
        facts.ns_per_item(copied_ns::<T>()).message(
            "more",
            ParameterKind::Integer,
            "items to pass from now on; 0 ends it",
        );
    }

    fn message(&mut self, _: &str, value: &ParameterValue) -> Result<(), BlockError> {
        let more = value.as_integer().and_then(|more| u64::try_from(more).ok());
        self.left = more.ok_or("expected zero or more")?;
        // As in `new`.
        let least = usize::from(self.left > 0);
        self.input.set_min_items(least);
        self.output.set_min_items(least);
        Ok(())
    }
}

/// Passes on the first items, and then ends the graph.
#[derive(BlockParameters)]
#[block(head, pure, items(cf32, f32, sc16, u8), example = "count = 1000")]
struct HeadParameters {
    /// number of items
    #[parameter(incidental)]
    count: u64,
}

impl HeadParameters {
    fn make<T: Item>(self) -> Head<T> {
        Head::new(self.count)
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

    #[test]
    fn a_message_moves_the_end() {
        let mut mock = Mock::new(Head::<i32>::new(100));
        mock.feed("in", &[1, 2]);
        mock.run().unwrap();
        mock.send("more", 1i64).unwrap();
        mock.feed("in", &[3, 4]);
        mock.run().unwrap();
        assert_eq!(mock.take::<i32>("out"), [1, 2, 3]);
        assert!(mock.is_finished());
    }
}
