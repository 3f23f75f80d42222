//! A delay by whole items.

use millstream_flow::Item;
use millstream_flow::copied_ns;
use millstream_flow::registry::BlockParameters;
use millstream_flow::{BlockFacts, Process, Through};
use std::marker::PhantomData;

/// Inserts zeros before a stream, which delays every item and its tags.
#[derive(Debug)]
pub struct Delay<T> {
    left: u64,
    count: u64,
    items: PhantomData<T>,
}

impl<T: Item> Delay<T> {
    /// Creates a delay by `count` items.
    #[must_use]
    pub fn new(count: u64) -> Self {
        Self { left: count, count, items: PhantomData }
    }
}

impl<T: Item> Process for Delay<T> {
    type Input = T;
    type Output = T;

    fn process(&mut self, input: &[T], output: &mut [T]) -> (usize, usize) {
        let zeros = usize::try_from(self.left).unwrap_or(usize::MAX).min(output.len());
        output[..zeros].fill(T::zeroed());
        self.left -= zeros as u64;
        let output = &mut output[zeros..];
        let items = input.len().min(output.len());
        output[..items].copy_from_slice(&input[..items]);
        (items, zeros + items)
    }

    fn facts(&self, facts: &mut BlockFacts) {
        facts.delay(self.count as f64).ns_per_item(copied_ns::<T>());
    }
}

/// Delays a stream: sends zeros before the first item.
#[derive(BlockParameters)]
#[block(delay, pure, items(cf32, f32, sc16, u8), example = "count = 100")]
struct DelayParameters {
    /// number of zeros
    count: u64,
}

impl DelayParameters {
    fn make<T: Item>(self) -> Through<Delay<T>> {
        Through::new(Delay::new(self.count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use millstream_flow::Mock;

    #[test]
    fn zeros_come_first() {
        let mut mock = Mock::new(Through::new(Delay::<u8>::new(3)));
        mock.feed("in", &[7u8, 8]);
        mock.end("in");
        mock.run().unwrap();
        assert_eq!(mock.take::<u8>("out"), [0, 0, 0, 7, 8]);
        assert!(mock.is_finished());
    }
}
