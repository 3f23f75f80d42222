//! Decimation without a filter.

use millstream_flow::copied_ns;
use millstream_flow::registry::BlockParameters;
use millstream_flow::{BlockFacts, Process, Through};
use millstream_flow::{Item, ItemRatio};
use std::marker::PhantomData;

/// Keeps the last of every `n` items, without a filter: higher frequencies alias.
#[derive(Debug)]
pub struct KeepOneInN<T> {
    n: u32,
    /// Items before the next one to keep.
    skip: usize,
    items: PhantomData<T>,
}

impl<T: Item> KeepOneInN<T> {
    /// Creates a block that keeps one of `n` items.
    ///
    /// # Panics
    /// If `n` is zero.
    #[must_use]
    pub fn new(n: u32) -> Self {
        assert!(n > 0, "one of none");
        Self { n, skip: n as usize - 1, items: PhantomData }
    }
}

impl<T: Item> Process for KeepOneInN<T> {
    type Input = T;
    type Output = T;

    fn process(&mut self, input: &[T], output: &mut [T]) -> (usize, usize) {
        let n = self.n as usize;
        let kept = input.get(self.skip..).unwrap_or(&[]).iter().step_by(n);
        let mut made = 0;
        for (to, from) in output.iter_mut().zip(kept) {
            *to = *from;
            made += 1;
        }
        // All input items, unless the output was full.
        let next = self.skip + made * n;
        let taken = if made < output.len() { input.len() } else { next.min(input.len()) };
        self.skip = next - taken;
        (taken, made)
    }

    fn facts(&self, facts: &mut BlockFacts) {
        facts
            .rate(ItemRatio::decimate(self.n))
            .delay(-f64::from(self.n - 1))
            .holds(u64::from(self.n) - 1)
            .ns_per_item(copied_ns::<T>());
    }
}

/// Keeps the last of every n items; does not filter.
#[derive(BlockParameters)]
#[block(keep_one_in_n, pure, items(cf32, f32, sc16, u8), example = "n = 8")]
struct KeepOneInNParameters {
    /// number of input items for one output item
    #[parameter(least = 1)]
    n: u32,
}

impl KeepOneInNParameters {
    fn make<T: Item>(self) -> Through<KeepOneInN<T>> {
        Through::new(KeepOneInN::new(self.n))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use millstream_flow::Mock;

    #[test]
    fn the_last_of_every_n_remains() {
        let mut mock = Mock::new(Through::new(KeepOneInN::<u8>::new(3)));
        mock.feed("in", &[1u8, 2, 3, 4]);
        mock.run().unwrap();
        mock.feed("in", &[5u8, 6, 7, 8]);
        mock.run().unwrap();
        assert_eq!(mock.take::<u8>("out"), [3, 6]);
        mock.feed("in", &[9u8]);
        mock.run().unwrap();
        assert_eq!(mock.take::<u8>("out"), [9]);
    }
}
