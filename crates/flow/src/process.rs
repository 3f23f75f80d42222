//! Blocks with one input and one output.

use crate::{Block, BlockError, BlockFacts, Context, In, Item, Out, ParameterValue, Ports, Work};

/// A conversion of one stream into another, by slices of any length. Where each item makes one
/// item, [`OneToOne`](crate::OneToOne) is shorter and faster.
pub trait Process: Send + 'static {
    /// Items of the input.
    type Input: Item;
    /// Items of the output.
    type Output: Item;

    /// Processes as many items as fit; returns how many it consumed and produced. Called again
    /// until both are zero. It must give the same stream for slices of any length, and must not
    /// allocate.
    fn process(&mut self, input: &[Self::Input], output: &mut [Self::Output]) -> (usize, usize);

    /// Returns the least number of items that input and output need.
    fn least(&self) -> (usize, usize) {
        (1, 1)
    }

    /// See [`Block::facts`].
    fn facts(&self, _facts: &mut BlockFacts) {}

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

    fn facts(&self, facts: &mut BlockFacts) {
        self.process.facts(facts);
    }

    fn message(&mut self, name: &str, value: &ParameterValue) -> Result<(), BlockError> {
        self.process.message(name, value)
    }
}
