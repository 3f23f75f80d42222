//! Passes items on.

use crate::registry::BlockParameters;
use crate::{
    Block, BlockError, BlockFacts, BlockMemory, Context, In, Item, Lane, Out, Ports, Work,
    copied_ns,
};

/// Passes items on unchanged: the cheapest possible block, to measure the runtime with.
///
/// Ports: `in`, `out`.
#[derive(Debug, Default, Ports)]
pub struct Copy<T: Item> {
    /// Items.
    pub input: In<T>,
    /// The same items.
    pub output: Out<T>,
}

impl<T: Item> Copy<T> {
    /// Makes a copier.
    #[must_use]
    pub fn new() -> Self {
        Self { input: In::new(), output: Out::new() }
    }
}

impl<T: Item> Block for Copy<T> {
    fn work(&mut self, _: &mut Context) -> Result<Work, BlockError> {
        self.pass(&mut Lane::of_ports());
        Ok(Work::Continue)
    }

    fn pass(&mut self, lane: &mut Lane) {
        lane.through(&mut self.input, &mut self.output, |input, output| {
            output.copy_from_slice(input);
        });
    }

    fn facts(&self, facts: &mut BlockFacts) {
        facts.ns_per_item(copied_ns::<T>()).memory(BlockMemory::none());
    }
}

/// Passes items on unchanged.
#[derive(BlockParameters)]
#[block(copy, pure, items(cf32, f32, sc16, u8))]
struct CopyParameters {}

impl CopyParameters {
    fn make<T: Item>(self) -> Copy<T> {
        Copy::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Mock;

    #[test]
    fn passes_everything_on() {
        let items: Vec<u8> = (0..10_000u32).map(|i| i as u8).collect();
        let mut mock = Mock::new(Copy::<u8>::new());
        mock.feed("in", &items);
        mock.run().unwrap();
        assert_eq!(mock.take::<u8>("out"), items);
    }
}
