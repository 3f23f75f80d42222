//! The interface between signal processing and the runtime: [`Block`].

use crate::lane::Lane;
use crate::memory::BlockMemory;
use crate::message::{EmitterList, MessageSpec};
use crate::metric::Metric;
use crate::port::{PortVisitor, Ports};
use crate::rate::ItemRatio;
use crate::tag::TagRule;
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

/// The estimate for a block that gives none, nanoseconds an item: a filter of ordinary length.
pub(crate) const UNKNOWN_NS_PER_ITEM: f64 = 5.0;

/// Returns the time to copy one item, nanoseconds: the estimate for a block that does hardly more.
#[must_use]
pub const fn copied_ns<T>() -> f64 {
    0.02 * size_of::<T>() as f64
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

    /// Whether this block can be part of a [fused chain](crate::lane): it has at most one input and
    /// one output and asks for one item of either, every call makes exactly as many items as it
    /// takes and could take any number, it makes and reads no tags, and never ends by itself. Such
    /// a block implements [`pass`](Self::pass) next to `work`. Called before the start.
    fn is_one_to_one(&self) -> bool {
        false
    }

    /// Does the work of `work` for exactly the items of the lane. Called only for a block that [is
    /// one-to-one](Self::is_one_to_one). Inside a fused chain the block's own ports grant nothing,
    /// neither here nor in [`message`](Self::message), and their positions are a few batches old.
    fn pass(&mut self, _lane: &mut Lane) {
        unreachable!("a block that says it is straight has a `pass`")
    }

    /// Returns the numbers that this block publishes, with names. Called once before the start.
    fn metrics(&self) -> Vec<(&'static str, Metric)> {
        Vec::new()
    }

    /// Returns the items out for items in. Called before the start and behind messages.
    fn rate(&self) -> ItemRatio {
        ItemRatio::ONE
    }

    /// Returns the time that one item takes on an ordinary CPU, nanoseconds, by estimate and by the
    /// block's parameters. Items are counted at the busier port. A plan for a graph that was not
    /// measured follows these estimates, so only their ratios matter. Called once before the start.
    fn ns_per_item(&self) -> f64 {
        UNKNOWN_NS_PER_ITEM
    }

    /// Returns by how many items of the input what comes out is later than what went in: the group
    /// delay of a filter. Negative where an output item shows the last of several input items. Tags
    /// move with the samples by it, and times of tags are corrected by it (see
    /// [`TagShift`](crate::TagShift)). A filter whose delay depends on the frequency gives the mean
    /// one of its power.
    fn delay(&self) -> f64 {
        0.0
    }

    /// Returns by how much the block moves the band up now, Hz: the frequency in its middle becomes
    /// lower by it, which changes the value of the tag `rx_freq_hz`.
    fn band_shift_hz(&self) -> f64 {
        0.0
    }

    /// Returns the rule for the tags on the inputs. Called once before the start.
    fn tag_rule(&self) -> TagRule {
        TagRule::Forward
    }

    /// Returns the most items, of the input, that the block keeps inside beyond a call: filter
    /// history that delays, a frame being filled. The latency bound counts them. Called once before
    /// the start.
    fn holds(&self) -> u64 {
        0
    }

    /// Returns how much of its past the block needs, see
    /// [`observe::memory`](crate::observe::memory); `None` if that is not known or has no end.
    fn memory(&self) -> Option<BlockMemory> {
        None
    }

    /// Returns the messages that this block takes. Called once before the start.
    fn messages(&self) -> Vec<MessageSpec> {
        Vec::new()
    }

    /// Takes a message, between two calls of `work` on the thread of `work`. The name is one of
    /// [`messages`](Self::messages) and the value of its kind.
    ///
    /// # Errors
    /// The reason why the value is invalid. The block continues as before; the refusal is counted
    /// and its reason is shown.
    fn message(&mut self, name: &str, _value: &ParameterValue) -> Result<(), BlockError> {
        Err(format!("the block declares the message `{name}` but does not handle it").into())
    }

    /// Returns the block's emitters, always the same in the same order. Called before the start.
    fn emitters(&mut self) -> EmitterList<'_> {
        Vec::new()
    }
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

    fn is_one_to_one(&self) -> bool {
        (**self).is_one_to_one()
    }

    fn pass(&mut self, lane: &mut Lane) {
        (**self).pass(lane);
    }

    fn metrics(&self) -> Vec<(&'static str, Metric)> {
        (**self).metrics()
    }

    fn rate(&self) -> ItemRatio {
        (**self).rate()
    }

    fn ns_per_item(&self) -> f64 {
        (**self).ns_per_item()
    }

    fn delay(&self) -> f64 {
        (**self).delay()
    }

    fn band_shift_hz(&self) -> f64 {
        (**self).band_shift_hz()
    }

    fn tag_rule(&self) -> TagRule {
        (**self).tag_rule()
    }

    fn holds(&self) -> u64 {
        (**self).holds()
    }

    fn memory(&self) -> Option<BlockMemory> {
        (**self).memory()
    }

    fn messages(&self) -> Vec<MessageSpec> {
        (**self).messages()
    }

    fn message(&mut self, name: &str, value: &ParameterValue) -> Result<(), BlockError> {
        (**self).message(name, value)
    }

    fn emitters(&mut self) -> EmitterList<'_> {
        (**self).emitters()
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
