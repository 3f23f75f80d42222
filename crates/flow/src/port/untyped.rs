//! Ports without their item types, for the graph and the runtime.

use super::{PortVisitor, Ports};
use crate::item::ItemType;
use crate::message::Emitter;
use crate::tag::shift::Conversion;
use crate::tag::side::Fetched;
use crate::tag::{Tag, TagChangeFlag, TagShift};
use millstream_ring::cursor::{Consumer, ConsumerView, Producer, ProducerView};
use millstream_ring::{RingError, RingOptions};
use std::any::Any;

/// An input without its item type.
pub trait InputPort {
    /// Returns the type of the items.
    fn item_type(&self) -> ItemType;
    /// See [`In::with_min_items`](super::In::with_min_items).
    fn min_items(&self) -> usize;
    /// Returns the view of the reading end, in items; `None` before the port is connected.
    fn view(&self) -> Option<ConsumerView>;
    /// Returns the change flag of arriving tags, which can be read without the port; `None` before
    /// the port is connected.
    fn tag_news(&self) -> Option<TagChangeFlag>;
    /// Receives the tags of the items that can be seen now.
    fn fetch_tags(&mut self) -> Fetched;
    /// Passes each received tag once to `to`.
    fn forward_tags(&mut self, to: &mut dyn FnMut(Tag));
    /// Whether no tag is on its way to the block.
    fn is_untagged(&self) -> bool;
    /// Hands out the cursor while items bypass the ring in a [lane](crate::Lane): the port has
    /// nothing to read meanwhile. `None` if the cursor is out already, or there is no ring.
    fn bypass(&mut self) -> Option<Consumer>;
    /// Takes the cursor back.
    fn resume(&mut self, cursor: Consumer);
    /// Takes the reading end that [`OutputPort::open`] made; false if its type is another.
    fn attach(&mut self, reader: Box<dyn Any + Send>) -> bool;
    /// Attaches a ring of at least `items` items and hands out its writing end, untyped.
    ///
    /// # Errors
    /// [`RingError`] when the ring cannot be made.
    fn attach_feeder(&mut self, items: usize) -> Result<Box<dyn MockWriter>, RingError>;
    /// Stops reading.
    fn close(&mut self);
}

/// An output without its item type.
pub trait OutputPort {
    /// Returns the type of the items.
    fn item_type(&self) -> ItemType;
    /// See [`Out::with_min_items`](super::Out::with_min_items).
    fn min_items(&self) -> usize;
    /// Returns the view of the writing end, in items; `None` before the port is open.
    fn view(&self) -> Option<ProducerView>;
    /// Keeps a tag until its item is produced. It was forwarded from this input, whose number
    /// orders the tags of one item, and this tag of it.
    fn hold_tag(&mut self, tag: Tag, origin: (u16, Tag));
    /// Moves the tags of input `rank` that wait for their items, because the block `was` another
    /// and has the rule `shift` `now`, and says what of earlier tags is not true any more.
    fn turn_tags(&mut self, rank: u16, shift: TagShift, was: Conversion, now: Conversion);
    /// Whether no tag waits for its item.
    fn is_untagged(&self) -> bool;
    /// Hands out the cursor while items bypass the ring in a [lane](crate::Lane): the port has no
    /// room meanwhile. `None` if the cursor is out already, there is no ring, or a tap.
    fn bypass(&mut self) -> Option<Producer>;
    /// Takes the cursor back.
    fn resume(&mut self, cursor: Producer);
    /// Makes the ring and hands out its reading ends, for [`InputPort::attach`].
    ///
    /// # Errors
    /// [`RingError`] when the ring cannot be made.
    fn open(&mut self, options: &RingOptions) -> Result<Vec<Box<dyn Any + Send>>, RingError>;
    /// Opens with one reader and returns it untyped.
    ///
    /// # Errors
    /// [`RingError`] when the ring cannot be made.
    fn open_collector(&mut self, items: usize) -> Result<Box<dyn Collector>, RingError>;
    /// Takes a `Box<dyn OutputTap<T>>`; false if its type is another.
    fn tap(&mut self, tap: Box<dyn Any + Send>) -> bool;
    /// Ends the stream.
    fn close(&mut self);
}

/// A writing end that buffers more than the ring, for [`Mock`](crate::Mock).
pub trait MockWriter: Send {
    /// Returns the `MockInput<T>` behind it.
    fn as_any(&mut self) -> &mut dyn Any;
    /// Moves buffered items into the ring; returns how many.
    fn refill(&mut self) -> usize;
    /// Puts a tag on an item, counted from the start.
    fn tag(&mut self, tag: Tag);
    /// Ends the stream once all buffered items have been moved.
    fn end(&mut self);
}

/// A reading end that collects into memory, for [`Mock`](crate::Mock).
pub trait Collector: Send {
    /// Returns the `Collection<T>` behind it.
    fn as_any(&mut self) -> &mut dyn Any;
    /// Moves items out of the ring; returns how many.
    fn drain(&mut self) -> usize;
    /// Takes the collected tags.
    fn take_tags(&mut self) -> Vec<Tag>;
}

/// Calls `input` or `output` with each port of a block and its name, in order.
pub(crate) fn each_port(
    block: &mut (impl Ports + ?Sized),
    input: impl FnMut(&str, &mut dyn InputPort),
    output: impl FnMut(&str, &mut dyn OutputPort),
) {
    block.ports(&mut PortCalls { input, output });
}

/// Calls `emitter` with each emitter of a block and its name, in order.
pub(crate) fn each_emitter(
    block: &mut (impl Ports + ?Sized),
    emitter: impl FnMut(&str, &mut Emitter),
) {
    block.ports(&mut EachEmitter(emitter));
}

struct EachEmitter<E>(E);

impl<E: FnMut(&str, &mut Emitter)> PortVisitor for EachEmitter<E> {
    fn input(&mut self, _: &str, _: &mut dyn InputPort) {}

    fn output(&mut self, _: &str, _: &mut dyn OutputPort) {}

    fn emitter(&mut self, name: &str, emitter: &mut Emitter) {
        (self.0)(name, emitter);
    }
}

/// Calls one function with each input, the other with each output.
struct PortCalls<I, O> {
    input: I,
    output: O,
}

impl<I, O> PortVisitor for PortCalls<I, O>
where
    I: FnMut(&str, &mut dyn InputPort),
    O: FnMut(&str, &mut dyn OutputPort),
{
    fn input(&mut self, name: &str, port: &mut dyn InputPort) {
        (self.input)(name, port);
    }

    fn output(&mut self, name: &str, port: &mut dyn OutputPort) {
        (self.output)(name, port);
    }
}
