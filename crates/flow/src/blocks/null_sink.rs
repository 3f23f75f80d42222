//! Discards items.

use crate::registry::BlockParameters;
use crate::{Block, BlockError, BlockFacts, BlockMemory, Context, In, Item, Lane, Ports, Work};

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
        self.pass(&mut Lane::of_ports());
        Ok(Work::Continue)
    }

    fn pass(&mut self, lane: &mut Lane) {
        lane.sink(&mut self.input, |_| {});
    }

    fn facts(&self, facts: &mut BlockFacts) {
        facts.ns_per_item(0.0).memory(BlockMemory::none());
    }
}

/// Discards all items.
#[derive(BlockParameters)]
#[block(null_sink, pure, items(cf32, f32, sc16, u8))]
struct NullSinkParameters {}

impl NullSinkParameters {
    fn make<T: Item>(self) -> NullSink<T> {
        NullSink::new()
    }
}
