//! Items from memory.

use crate::{Block, BlockError, Context, Item, Out, Ports, Work};

/// Produces the items of a vector, then ends.
///
/// Ports: `out`.
#[derive(Debug, Ports)]
pub struct VectorSource<T: Item> {
    /// The items.
    pub output: Out<T>,
    items: Vec<T>,
    given: usize,
}

impl<T: Item> VectorSource<T> {
    /// Produces `items` once.
    #[must_use]
    pub fn new(items: Vec<T>) -> Self {
        Self { output: Out::new(), items, given: 0 }
    }
}

impl<T: Item> Block for VectorSource<T> {
    fn work(&mut self, _: &mut Context) -> Result<Work, BlockError> {
        let rest = &self.items[self.given..];
        let output = self.output.slice_mut();
        let items = rest.len().min(output.len());
        output[..items].copy_from_slice(&rest[..items]);
        self.output.produce(items);
        self.given += items;
        Ok(if self.given == self.items.len() { Work::Finished } else { Work::Continue })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Mock;

    #[test]
    fn gives_everything_once() {
        let items: Vec<u16> = (0..50_000).collect();
        let mut mock = Mock::new(VectorSource::new(items.clone()));
        mock.run().unwrap();
        assert!(mock.is_finished());
        assert_eq!(mock.take::<u16>("out"), items);
    }
}
