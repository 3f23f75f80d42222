//! Zeros without end.

use crate::registry::BlockParameters;
use crate::{Block, BlockError, BlockFacts, Context, Item, Lane, Out, Ports, Work, copied_ns};

/// All-zero items, as many as there is room for, without end.
///
/// Ports: `out`.
#[derive(Debug, Default, Ports)]
pub struct NullSource<T: Item> {
    /// Zeros.
    pub output: Out<T>,
}

impl<T: Item> NullSource<T> {
    /// Makes a source of zeros.
    #[must_use]
    pub fn new() -> Self {
        Self { output: Out::new() }
    }
}

impl<T: Item> Block for NullSource<T> {
    fn work(&mut self, _: &mut Context) -> Result<Work, BlockError> {
        self.pass(&mut Lane::of_ports());
        Ok(Work::Continue)
    }

    fn pass(&mut self, lane: &mut Lane) {
        lane.source(&mut self.output, |output| output.fill(T::zeroed()));
    }

    fn facts(&self, facts: &mut BlockFacts) {
        facts.ns_per_item(copied_ns::<T>() / 2.0);
    }
}

/// Sends only zeros.
#[derive(BlockParameters)]
#[block(null_source, pure, items(cf32, f32, sc16, u8))]
struct NullSourceParameters {}

impl NullSourceParameters {
    fn make<T: Item>(self) -> NullSource<T> {
        NullSource::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Mock;

    #[test]
    fn gives_zeros_lap_after_lap() {
        let mut mock = Mock::with_room(NullSource::<u32>::new(), 1);
        for _ in 0..3 {
            mock.call().unwrap();
            let items = mock.take::<u32>("out");
            assert!(!items.is_empty() && items.iter().all(|item| *item == 0));
        }
    }
}
