//! Items into memory.

use crate::{Block, BlockError, Context, In, Item, Ports, Work};
use millstream_ring::Lock;
use std::sync::Arc;

/// Collects items in memory, to be taken when the graph has ended. Allocates as it grows:
/// meant for tests and small results.
///
/// Ports: `in`.
#[derive(Debug, Ports)]
pub struct VectorSink<T: Item> {
    /// Items.
    pub input: In<T>,
    items: Vec<T>,
    collected: Collected<T>,
}

/// The items that a [`VectorSink`] has collected. Empty until the sink has finished.
#[derive(Debug)]
pub struct Collected<T>(Arc<Lock<Vec<T>>>);

impl<T> Collected<T> {
    /// Takes the items.
    #[must_use]
    pub fn take(&self) -> Vec<T> {
        std::mem::take(&mut *self.0.lock())
    }
}

impl<T: Item> VectorSink<T> {
    /// Returns a sink and the handle to its items.
    #[must_use]
    pub fn new() -> (Self, Collected<T>) {
        let shared = Arc::new(Lock::new(Vec::new()));
        let collected = Collected(Arc::clone(&shared));
        (Self { input: In::new(), items: Vec::new(), collected }, Collected(shared))
    }
}

impl<T: Item> Block for VectorSink<T> {
    fn work(&mut self, _: &mut Context) -> Result<Work, BlockError> {
        let input = self.input.slice();
        let items = input.len();
        self.items.extend_from_slice(input);
        self.input.consume(items);
        Ok(Work::Continue)
    }

    fn finish(&mut self) -> Result<(), BlockError> {
        let mut collected = self.collected.0.lock();
        *collected = std::mem::take(&mut self.items);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Mock;

    #[test]
    fn items_appear_at_the_end() {
        let (sink, collected) = VectorSink::<u8>::new();
        let mut mock = Mock::new(sink);
        mock.feed("in", &[1u8, 2]);
        mock.run().unwrap();
        assert!(collected.take().is_empty());
        mock.end("in");
        mock.run().unwrap();
        assert_eq!(collected.take(), [1, 2]);
    }
}
