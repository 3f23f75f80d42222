//! Discards items.

use crate::{Block, BlockError, BlockMemory, Context, In, Item, Lane, Ports, Work};

/// Discards everything.
///
/// Ports: `in`.
#[derive(Debug, Default, Ports)]
pub struct NullSink<T: Item> {
    /// Items.
    pub input: In<T>,
}

impl<T: Item> NullSink<T> {
    /// Makes a sink.
    #[must_use]
    pub fn new() -> Self {
        Self { input: In::new() }
    }
}

impl<T: Item> Block for NullSink<T> {
    fn work(&mut self, _: &mut Context) -> Result<Work, BlockError> {
        let items = self.input.slice().len();
        self.input.consume(items);
        Ok(Work::Continue)
    }

    fn is_one_to_one(&self) -> bool {
        true
    }

    fn pass(&mut self, lane: &mut Lane) {
        lane.sink(&mut self.input, |_| {});
    }

    fn ns_per_item(&self) -> f64 {
        0.0
    }

    fn memory(&self) -> Option<BlockMemory> {
        Some(BlockMemory::none())
    }
}
