//! Blocks with one input and one output.

use crate::block::UNKNOWN_NS_PER_ITEM;
use crate::{
    Block, BlockError, BlockMemory, Context, In, Item, ItemRatio, Lane, MessageSpec, Metric, Out,
    ParameterValue, Ports, TagRule, Work,
};

/// A conversion of one stream into another, by slices of any length.
pub trait Process: Send + 'static {
    /// Items of the input.
    type Input: Item;
    /// Items of the output.
    type Output: Item;

    /// Processes as many items as fit; returns how many it consumed and produced. Called again
    /// until both are zero. It must give the same stream for slices of any length, and must not
    /// allocate.
    fn process(&mut self, input: &[Self::Input], output: &mut [Self::Output]) -> (usize, usize);

    /// Whether slices of one length are always processed whole, into as many items. The block is
    /// [one-to-one](Block::is_one_to_one) then, if its tags simply pass.
    fn is_one_to_one(&self) -> bool {
        false
    }

    /// Returns the least number of items that input and output need.
    fn least(&self) -> (usize, usize) {
        (1, 1)
    }

    /// See [`Block::rate`].
    fn rate(&self) -> ItemRatio {
        ItemRatio::ONE
    }

    /// See [`Block::ns_per_item`].
    fn ns_per_item(&self) -> f64 {
        UNKNOWN_NS_PER_ITEM
    }

    /// See [`Block::delay`].
    fn delay(&self) -> f64 {
        0.0
    }

    /// See [`Block::band_shift_hz`].
    fn band_shift_hz(&self) -> f64 {
        0.0
    }

    /// See [`Block::tag_rule`].
    fn tag_rule(&self) -> TagRule {
        TagRule::Forward
    }

    /// See [`Block::holds`].
    fn holds(&self) -> u64 {
        0
    }

    /// See [`Block::memory`].
    fn memory(&self) -> Option<BlockMemory> {
        None
    }

    /// See [`Block::metrics`].
    fn metrics(&self) -> Vec<(&'static str, Metric)> {
        Vec::new()
    }

    /// See [`Block::messages`].
    fn messages(&self) -> Vec<MessageSpec> {
        Vec::new()
    }

    /// See [`Block::message`].
    ///
    /// # Errors
    /// The reason why the value is invalid.
    fn message(&mut self, name: &str, _value: &ParameterValue) -> Result<(), BlockError> {
        Err(format!("there is no message `{name}`").into())
    }
}

/// The block of a [`Process`]: ports `in` and `out`.
#[derive(Debug, Ports)]
pub struct Through<P: Process> {
    /// Items to process.
    pub input: In<P::Input>,
    /// Processed items.
    pub output: Out<P::Output>,
    /// The conversion.
    pub process: P,
}

impl<P: Process> Through<P> {
    /// Makes a block of `process`.
    #[must_use]
    pub fn new(process: P) -> Self {
        let (input, output) = process.least();
        let (input, output) = (In::with_min_items(input), Out::with_min_items(output));
        Self { input, output, process }
    }
}

impl<P: Process> Block for Through<P> {
    fn work(&mut self, _: &mut Context) -> Result<Work, BlockError> {
        let (taken, made) = self.process.process(self.input.slice(), self.output.slice_mut());
        self.input.consume(taken);
        self.output.produce(made);
        Ok(Work::Continue)
    }

    fn is_one_to_one(&self) -> bool {
        self.process.is_one_to_one() && self.process.tag_rule() == TagRule::Forward
    }

    fn pass(&mut self, lane: &mut Lane) {
        let Self { input, output, process } = self;
        lane.through(input, output, |input, output| {
            let moved = process.process(input, output);
            assert!(moved == (input.len(), input.len()), "a straight process left items behind");
        });
    }

    fn metrics(&self) -> Vec<(&'static str, Metric)> {
        self.process.metrics()
    }

    fn rate(&self) -> ItemRatio {
        self.process.rate()
    }

    fn ns_per_item(&self) -> f64 {
        self.process.ns_per_item()
    }

    fn delay(&self) -> f64 {
        self.process.delay()
    }

    fn band_shift_hz(&self) -> f64 {
        self.process.band_shift_hz()
    }

    fn tag_rule(&self) -> TagRule {
        self.process.tag_rule()
    }

    fn holds(&self) -> u64 {
        self.process.holds()
    }

    fn memory(&self) -> Option<BlockMemory> {
        self.process.memory()
    }

    fn messages(&self) -> Vec<MessageSpec> {
        self.process.messages()
    }

    fn message(&mut self, name: &str, value: &ParameterValue) -> Result<(), BlockError> {
        self.process.message(name, value)
    }
}
