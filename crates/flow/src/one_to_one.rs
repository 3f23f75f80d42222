//! Blocks that make one item of each.

use crate::{
    Block, BlockError, BlockFacts, Context, In, Item, ItemRatio, Lane, Out, ParameterValue, Ports,
    TagRule, Work,
};
use std::marker::PhantomData;

/// A conversion that makes exactly one item of each. The runtime passes its items through
/// [fused chains](crate::lane), without rings.
pub trait OneToOne: Send + 'static {
    /// Items of the input.
    type Input: Item;
    /// Items of the output.
    type Output: Item;

    /// Processes all items of `input` into `output`, which is as long. It must give the same stream
    /// for slices of any length, and must not allocate.
    fn run(&mut self, input: &[Self::Input], output: &mut [Self::Output]);

    /// See [`Block::facts`]. The rate is one and tags pass, whatever is stated here.
    fn facts(&self, _facts: &mut BlockFacts) {}

    /// See [`Block::message`].
    ///
    /// # Errors
    /// The reason why the value is invalid.
    fn message(&mut self, name: &str, _value: &ParameterValue) -> Result<(), BlockError> {
        Err(format!("there is no message `{name}`").into())
    }
}

/// The block of a [`OneToOne`]: ports `in` and `out`.
#[derive(Debug, Ports)]
pub struct Each<O: OneToOne> {
    /// Items to process.
    pub input: In<O::Input>,
    /// Processed items.
    pub output: Out<O::Output>,
    /// The conversion.
    pub process: O,
}

impl<O: OneToOne> Each<O> {
    /// Makes a block of `process`.
    #[must_use]
    pub fn new(process: O) -> Self {
        Self { input: In::new(), output: Out::new(), process }
    }
}

impl<O: OneToOne> Block for Each<O> {
    fn work(&mut self, _: &mut Context) -> Result<Work, BlockError> {
        self.pass(&mut Lane::of_ports());
        Ok(Work::Continue)
    }

    fn message(&mut self, name: &str, value: &ParameterValue) -> Result<(), BlockError> {
        self.process.message(name, value)
    }

    fn facts(&self, facts: &mut BlockFacts) {
        self.process.facts(facts);
        facts.rate(ItemRatio::ONE).tag_rule(TagRule::Forward);
    }

    fn pass(&mut self, lane: &mut Lane) {
        let Self { input, output, process } = self;
        lane.through(input, output, |input, output| process.run(input, output));
    }
}

/// Makes a block of a function of one item.
///
/// ```
/// use millstream_flow::{Mock, map};
///
/// let mut mock = Mock::new(map(|x: f32| 2.0 * x));
/// mock.feed("in", &[1.0f32, 2.0]);
/// mock.run().unwrap();
/// assert_eq!(mock.take::<f32>("out"), [2.0, 4.0]);
/// ```
pub fn map<A: Item, B: Item>(
    function: impl FnMut(A) -> B + Send + 'static,
) -> Each<impl OneToOne<Input = A, Output = B>> {
    Each::new(ItemFunction { function, items: PhantomData })
}

/// A function of one item.
struct ItemFunction<A, B, F> {
    function: F,
    items: PhantomData<fn(A) -> B>,
}

impl<A: Item, B: Item, F: FnMut(A) -> B + Send + 'static> OneToOne for ItemFunction<A, B, F> {
    type Input = A;
    type Output = B;

    fn run(&mut self, input: &[A], output: &mut [B]) {
        for (to, from) in output.iter_mut().zip(input) {
            *to = (self.function)(*from);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blocks::{Copy, Head, NullSink, NullSource};
    use crate::{Process, Through};

    /// Adds one, and states a rate and a rule that no such block has.
    struct AddOne;

    impl OneToOne for AddOne {
        type Input = u32;
        type Output = u32;

        fn run(&mut self, input: &[u32], output: &mut [u32]) {
            assert!(!input.is_empty(), "a block was called without items");
            for (to, from) in output.iter_mut().zip(input) {
                *to = from + 1;
            }
        }

        fn facts(&self, facts: &mut BlockFacts) {
            facts.rate(ItemRatio::decimate(2)).tag_rule(TagRule::Drop).holds(3);
        }
    }

    impl Process for AddOne {
        type Input = u32;
        type Output = u32;

        fn process(&mut self, _: &[u32], _: &mut [u32]) -> (usize, usize) {
            (0, 0)
        }
    }

    #[test]
    fn only_one_to_one_blocks_take_lanes_and_no_item_moves_by_the_question() {
        let blocks: [(Box<dyn Block>, bool); 6] = [
            (Box::new(Each::new(AddOne)), true),
            (Box::new(Copy::<u32>::new()), true),
            (Box::new(NullSource::<u32>::new()), true),
            (Box::new(NullSink::<u32>::new()), true),
            (Box::new(Head::<u32>::new(1)), false),
            (Box::new(Through::new(AddOne)), false),
        ];
        for (at, (block, is_one_to_one)) in blocks.into_iter().enumerate() {
            // Boxed once more: nothing is lost on the way.
            let mut mock = crate::Mock::new(Box::new(block) as Box<dyn Block>);
            assert_eq!(
                Lane::is_taken_by(|lane| mock.block.pass(lane)),
                is_one_to_one,
                "block {at}"
            );
        }
        let mut mock = crate::Mock::new(Each::new(AddOne));
        mock.feed("in", &[1u32, 2]);
        assert!(Lane::is_taken_by(|lane| mock.block.pass(lane)));
        mock.run().unwrap();
        assert_eq!(mock.take::<u32>("out"), [2, 3]);
    }

    #[test]
    fn a_one_to_one_block_has_the_rate_one_whatever_it_states() {
        let facts = BlockFacts::of(&(Box::new(Each::new(AddOne)) as Box<dyn Block>));
        assert_eq!((facts.rate, facts.tag_rule), (ItemRatio::ONE, TagRule::Forward));
        assert_eq!(facts.holds, 3);
    }
}
