//! The interface between signal processing and the runtime: [`Block`].

use crate::facts::BlockFacts;
use crate::lane::Lane;
use crate::port::{PortVisitor, Ports};
use crate::value::ParameterValue;
use std::time::{Duration, Instant};

/// The error of a block. Any error converts with `?`, and so does text: `Err("why".into())`.
pub type BlockError = Box<dyn std::error::Error + Send + Sync>;

/// The request of a block to the runtime after a call of [`Block::work`].
///
/// Progress is not reported: the runtime sees what the ports consumed and produced.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Work {
    /// Call again when the wanted items or room have appeared at the ports. (A source that produced
    /// nothing is called again after a millisecond.)
    Continue,
    /// As `Continue`, and call again after this long in any case (zero: at once), because the block
    /// has work that its ports do not show. For sources that poll and for blocks that pace.
    Again(Duration),
    /// This block will never consume or produce again. Its ports close: downstream drains, upstream
    /// sees that the reader is gone.
    Finished,
}

/// One step of signal processing: a struct with typed ports as fields, and one `work`.
///
/// # When `work` is called
/// When every input has its [least items](crate::In::with_min_items) (or has ended) and every
/// output has room for its own. Take [`In::slice`](crate::In::slice) and
/// [`Out::slice_mut`](crate::Out::slice_mut), process what fits, then `consume` and `produce`.
/// Between `start` and the end, do not allocate, lock or log.
///
/// # When a block ends
/// - It returns [`Work::Finished`].
/// - An input has ended, every other input has something to read or has ended too, every output has
///   room, and a call that returns [`Work::Continue`] moves no item: the block can do nothing more.
///   So most blocks need no code for the end. A block that holds items back (a filter's tail)
///   checks [`In::is_ended`](crate::In::is_ended) and produces them; items that it leaves unread
///   are dropped.
/// - Every reader of its outputs is gone.
/// - It is a source (no inputs) and the graph is asked to stop.
pub trait Block: Ports + Send {
    /// Prepares for work; called once, on the thread that will work. Allocate here.
    ///
    /// # Errors
    /// Ends the graph and is reported with the block's name.
    fn start(&mut self) -> Result<(), BlockError> {
        Ok(())
    }

    /// Moves items from inputs to outputs.
    ///
    /// # Errors
    /// Ends the graph and is reported with the block's name.
    fn work(&mut self, context: &mut Context) -> Result<Work, BlockError>;

    /// Ends the work (flush, close); called once after the last `work`, unless the graph
    /// ended by an error.
    ///
    /// # Errors
    /// Ends the graph and is reported with the block's name.
    fn finish(&mut self) -> Result<(), BlockError> {
        Ok(())
    }

    /// Takes a message, between two calls of `work` on the thread of `work`. The name is one of
    /// the [facts'](BlockFacts::messages) and the value of its kind.
    ///
    /// # Errors
    /// The reason why the value is invalid. The block continues as before; the refusal is counted
    /// and its reason is shown.
    fn message(&mut self, name: &str, _value: &ParameterValue) -> Result<(), BlockError> {
        Err(format!("the block declares the message `{name}` but does not handle it").into())
    }

    /// States the constant facts of the block in `facts`, which come with the defaults. Called
    /// before the start, and again after each message, for a rate, delay and band shift that the
    /// message has changed.
    fn facts(&self, _facts: &mut BlockFacts) {}

    /// Takes exactly the items of the lane. Only a block that implements
    /// [`OneToOne`](crate::OneToOne), or has the same properties, has it; any other leaves the lane
    /// alone, as this default does, and is never part of a [fused chain](crate::lane). Inside a
    /// chain the block's own ports grant nothing, neither here nor in [`message`](Self::message),
    /// and their positions are a few batches old.
    fn pass(&mut self, _lane: &mut Lane) {}
}

impl Ports for Box<dyn Block> {
    fn ports(&mut self, ports: &mut dyn PortVisitor) {
        (**self).ports(ports);
    }
}

impl Block for Box<dyn Block> {
    fn start(&mut self) -> Result<(), BlockError> {
        (**self).start()
    }

    fn work(&mut self, context: &mut Context) -> Result<Work, BlockError> {
        (**self).work(context)
    }

    fn finish(&mut self) -> Result<(), BlockError> {
        (**self).finish()
    }

    fn message(&mut self, name: &str, value: &ParameterValue) -> Result<(), BlockError> {
        (**self).message(name, value)
    }

    fn facts(&self, facts: &mut BlockFacts) {
        (**self).facts(facts);
    }

    fn pass(&mut self, lane: &mut Lane) {
        (**self).pass(lane);
    }
}

impl BlockFacts {
    /// Returns the facts of a block.
    #[must_use]
    pub fn of(block: &(impl Block + ?Sized)) -> Self {
        let mut facts = Self::default();
        block.facts(&mut facts);
        facts
    }

    /// Reads the facts of a block anew.
    pub(crate) fn read(&mut self, block: &(impl Block + ?Sized)) {
        self.clear();
        block.facts(self);
    }
}

/// The environment of one call of [`Block::work`].
#[derive(Clone, Debug)]
pub struct Context {
    /// When this call began: the last clock read of its partition, before this sweep over its
    /// blocks, or up to three sweeps ago where sweeps take microseconds. Blocks take time from
    /// here, not from the clock.
    pub now: Instant,
    /// The longest time that this call may block (in a socket, say). Zero when other blocks of the
    /// same partition have work to do; a few milliseconds when the partition would sleep anyway. A
    /// block that waited returns [`Work::Again`] with zero.
    pub may_block: Duration,
    /// Whether the graph was asked to stop. Sources need it only if they loop inside `work`.
    pub stopping: bool,
}

impl Context {
    /// Makes a context for a call at `now` that may not block.
    #[must_use]
    pub fn at(now: Instant) -> Self {
        Self { now, may_block: Duration::ZERO, stopping: false }
    }
}
