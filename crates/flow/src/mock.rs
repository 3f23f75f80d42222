//! One block alone, with given inputs and reserved outputs: for tests and benches.

use crate::block::{Block, BlockError, Context, Work};
use crate::carrier::TagCarrier;
use crate::facts::BlockFacts;
use crate::item::Item;
use crate::port::{Collection, Collector, MockInput, MockWriter, each_port};
use crate::port_state::Views;
use crate::tag::{Key, Tag, TagValue};
use crate::value::ParameterValue;
use std::collections::BTreeMap;
use std::time::Instant;

/// Room of each ring, in items, unless the block's ports want more.
const DEFAULT_ITEMS: usize = 4096;

/// Runs one block without a runtime.
///
/// ```
/// # use millstream_flow::{Block, BlockError, Context, In, Mock, Ports, Work};
/// #[derive(Ports)]
/// struct Sum { input: In<u8>, sum: u64 }
/// impl Block for Sum {
///     fn work(&mut self, _: &mut Context) -> Result<Work, BlockError> {
///         self.sum += self.input.slice().iter().map(|x| u64::from(*x)).sum::<u64>();
///         self.input.consume(self.input.slice().len());
///         Ok(Work::Continue)
///     }
/// }
/// let mut mock = Mock::new(Sum { input: In::new(), sum: 0 });
/// mock.feed("in", &[1u8, 2, 3]);
/// mock.run().unwrap();
/// assert_eq!(mock.block.sum, 6);
/// ```
///
/// # Panics
/// Methods panic on a port name or item type that the block does not have: a mock belongs in
/// tests.
pub struct Mock<B> {
    /// The block.
    pub block: B,
    inputs: BTreeMap<String, Box<dyn MockWriter>>,
    outputs: BTreeMap<String, Box<dyn Collector>>,
    views: Views,
    tags: TagCarrier,
    started: bool,
    finished: bool,
}

impl<B: Block> Mock<B> {
    /// Opens every port of `block` with room for 4096 items, or more if a port wants more.
    #[must_use]
    pub fn new(block: B) -> Self {
        Self::with_room(block, DEFAULT_ITEMS)
    }

    /// Opens every port with room for at least `items`, to try blocks with short and long
    /// slices (room is rounded up to whole pages).
    #[must_use]
    pub fn with_room(mut block: B, items: usize) -> Self {
        let (mut inputs, mut outputs) = (BTreeMap::new(), BTreeMap::new());
        each_port(
            &mut block,
            |name, port| {
                let feeder = port.attach_feeder(items.max(2 * port.min_items()));
                inputs.insert(name.to_owned(), feeder.expect("a ring for the mock"));
            },
            |name, port| {
                let collector = port.open_collector(items.max(2 * port.min_items()));
                outputs.insert(name.to_owned(), collector.expect("a ring for the mock"));
            },
        );
        let views = Views::of(&mut block);
        let tags = TagCarrier::of(&mut block);
        Self { block, inputs, outputs, views, tags, started: false, finished: false }
    }

    /// Appends items to an input. Items that do not fit into the ring follow as room appears.
    pub fn feed<T: Item>(&mut self, port: &str, items: &[T]) {
        let feeder = self.inputs.get_mut(port).unwrap_or_else(|| panic!("no input {port}"));
        let supply = feeder.as_any().downcast_mut::<MockInput<T>>();
        supply.unwrap_or_else(|| panic!("input {port} has another type")).held.extend(items);
        feeder.refill();
    }

    /// Puts a tag on item `offset` of an input, counted from its start, before the block is called
    /// with that item. Tags of one input are put on in the order of their items.
    pub fn tag(&mut self, port: &str, offset: u64, key: Key, value: impl Into<TagValue>) {
        let feeder = self.inputs.get_mut(port).unwrap_or_else(|| panic!("no input {port}"));
        feeder.tag(Tag { offset, key, value: value.into() });
    }

    /// Takes the tags on everything an output has produced since the last time.
    pub fn take_tags(&mut self, port: &str) -> Vec<Tag> {
        let output = self.outputs.get_mut(port).unwrap_or_else(|| panic!("no output {port}"));
        output.take_tags()
    }

    /// Ends an input, after the items that were fed.
    pub fn end(&mut self, port: &str) {
        self.inputs.get_mut(port).unwrap_or_else(|| panic!("no input {port}")).end();
    }

    /// Gives the block a message, at once.
    ///
    /// # Errors
    /// The block's reason to refuse it.
    ///
    /// # Panics
    /// If the block does not list the message, or lists it with another kind.
    pub fn send(&mut self, name: &str, value: impl Into<ParameterValue>) -> Result<(), BlockError> {
        let facts = BlockFacts::of(&self.block);
        let message = facts.messages.iter().find(|message| message.name == name);
        let message = message.unwrap_or_else(|| panic!("no message {name}"));
        let value = value.into().into_kind(message.kind);
        let value = value.unwrap_or_else(|| panic!("{name} takes {}", message.kind));
        self.block.message(name, &value)?;
        self.tags.follow(&mut self.block);
        Ok(())
    }

    /// Calls `work` until no item moves or the block is finished. Outputs are collected after each
    /// call, so a full output never blocks it. For a source without end use [`call`](Self::call).
    ///
    /// # Errors
    /// The block's.
    pub fn run(&mut self) -> Result<(), BlockError> {
        loop {
            let before = self.views.progress();
            let work = self.call()?;
            let moved = self.views.progress() != before;
            let drained: usize = self.outputs.values_mut().map(|output| output.drain()).sum();
            let refilled: usize = self.inputs.values_mut().map(|input| input.refill()).sum();
            if work == Work::Finished || (!moved && drained == 0 && refilled == 0) {
                return Ok(());
            }
        }
    }

    /// Calls `work` exactly once (after `start` at the first time), whether the ports are ready or
    /// not. For benches, and to test a block with little input or room.
    ///
    /// # Errors
    /// The block's.
    pub fn call(&mut self) -> Result<Work, BlockError> {
        if !std::mem::replace(&mut self.started, true) {
            self.block.start()?;
        }
        if self.finished {
            return Ok(Work::Finished);
        }
        let survey = self.views.survey();
        let before = self.views.progress();
        self.tags.carry(&mut self.block);
        let mut work = self.block.work(&mut Context::at(Instant::now()))?;
        let stuck = work == Work::Continue && survey.is_last_chance();
        if stuck && self.views.progress() == before {
            work = Work::Finished;
        }
        if work == Work::Finished {
            self.finished = true;
            self.block.finish()?;
        }
        Ok(work)
    }

    /// Whether the block has finished, by itself or because an ended input left it nothing to do.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.finished
    }

    /// Takes everything an output has produced since the last time.
    pub fn take<T: Item>(&mut self, port: &str) -> Vec<T> {
        let collector = self.outputs.get_mut(port).unwrap_or_else(|| panic!("no output {port}"));
        collector.drain();
        let collection = collector.as_any().downcast_mut::<Collection<T>>();
        let collection = collection.unwrap_or_else(|| panic!("output {port} has another type"));
        std::mem::take(&mut collection.items)
    }
}
