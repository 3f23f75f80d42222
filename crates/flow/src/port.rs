//! Typed ports: a block's only connection to the rest of the graph.
//!
//! [`In`] and [`Out`] are for blocks. [`InputPort`] and [`OutputPort`] are the same ports without
//! their item type, for the graph and the runtime.

mod ends;
mod numbered;
mod tap;
mod untyped;

pub use numbered::NumberedName;
pub use tap::OutputTap;
pub use untyped::{Collector, InputPort, MockWriter, OutputPort};
pub(crate) use untyped::{each_emitter, each_port};

use crate::item::{Item, ItemType};
use crate::message::Emitter;
use crate::tag::queue::{TagReceiver, queue};
use crate::tag::shift::Conversion;
use crate::tag::side::{Fetched, TagsIn, TagsOut};
use crate::tag::{Key, QUEUE_TAGS, Tag, TagChangeFlag, TagShift, TagValue, Tags};
pub(crate) use ends::{Collection, MockInput};
use millstream_ring::cursor::{Consumer, ConsumerView, Producer, ProducerView};
use millstream_ring::{Reader, RingError, RingOptions, Writer, ring};
use std::any::Any;
use tap::TapSlot;

/// The ports of a block.
///
/// `#[derive(Ports)]` implements it for a struct: it shows every field of type [`In`],
/// [`Out`] or [`Emitter`], in the order of the fields. A field called
/// `input` is the port `in`, one called `output` the port `out`; any other has its own name.
/// `#[port("name")]` gives another name. A `Vec` or an array of ports gives numbered ones:
/// `#[port("in")] inputs: Vec<In<f32>>` is `in0`, `in1` and so on.
pub trait Ports {
    /// Shows every port, always the same ones in the same order. Called often: only call the
    /// visitor.
    fn ports(&mut self, ports: &mut dyn PortVisitor);
}

/// A block with one input that has no number, which [`Graph::join`](crate::Graph::join) connects.
/// `#[derive(Ports)]` implements it.
pub trait OneInput {
    /// Items of the input.
    type Item: Item;
    /// Name of the input.
    const INPUT: &'static str;
}

/// A block with one output that has no number, which [`Graph::join`](crate::Graph::join) connects.
/// `#[derive(Ports)]` implements it.
pub trait OneOutput {
    /// Items of the output.
    type Item: Item;
    /// Name of the output.
    const OUTPUT: &'static str;
}

/// Receives every port of a block, in order. See [`Ports`].
pub trait PortVisitor {
    /// Receives an input called `name`, unique in its block.
    fn input(&mut self, name: &str, port: &mut dyn InputPort);
    /// Receives an output called `name`, unique in its block.
    fn output(&mut self, name: &str, port: &mut dyn OutputPort);
    /// Receives an emitter called `name`, unique in its block.
    fn emitter(&mut self, _name: &str, _emitter: &mut Emitter) {}
}

/// Items coming in.
///
/// Until the graph connects it, a port is empty and never ends.
#[derive(Debug)]
pub struct In<T: Item> {
    reader: Option<Reader<T>>,
    min_items: usize,
    tags: TagsIn,
}

impl<T: Item> In<T> {
    /// Makes an input that wants at least `min_items` items per call; zero makes it optional: the
    /// block is called without any. At the end of the stream a call may see fewer.
    #[must_use]
    pub fn with_min_items(min_items: usize) -> Self {
        Self { reader: None, min_items, tags: TagsIn::default() }
    }

    /// Returns all items that are there now, contiguous, but at most a batch of the plan's.
    #[must_use]
    pub fn slice(&self) -> &[T] {
        self.reader.as_ref().map_or(&[], Reader::slice)
    }

    /// Consumes the first `items` of [`slice`](Self::slice).
    ///
    /// # Panics
    /// If that slice was shorter.
    pub fn consume(&mut self, items: usize) {
        match &mut self.reader {
            Some(reader) => {
                reader.consume(items);
                self.tags.consumed(reader.position());
            }
            None => assert!(items == 0, "consumed items of a port that is not connected"),
        }
    }

    /// Returns the tags on the items of [`slice`](Self::slice), in the order of the items. A tag
    /// shows in every call until its item is consumed.
    #[must_use]
    pub fn tags(&self) -> Tags<'_> {
        let position = self.position();
        self.tags.seen(position, position + self.slice().len() as u64)
    }

    /// Whether the last [`slice`](Self::slice) holds all items that will ever come.
    #[must_use]
    pub fn is_ended(&self) -> bool {
        self.reader.as_ref().is_some_and(Reader::is_ended)
    }
}

/// Items going out. Several inputs may read one output; each sees every item.
///
/// An output without a reader discards its items.
#[derive(Debug)]
pub struct Out<T: Item> {
    writer: Option<Writer<T>>,
    min_items: usize,
    tags: TagsOut,
    tap: TapSlot<T>,
}

impl<T: Item> Out<T> {
    /// Makes an output that wants room for at least `min_items` items per call.
    #[must_use]
    pub fn with_min_items(min_items: usize) -> Self {
        Self { writer: None, min_items, tags: TagsOut::default(), tap: TapSlot::default() }
    }

    /// Returns all the room that is there now, contiguous, but at most a batch of the plan's. It
    /// holds old items: write before producing.
    pub fn slice_mut(&mut self) -> &mut [T] {
        self.writer.as_mut().map_or(&mut [], Writer::slice_mut)
    }

    /// Produces the first `items` of [`slice_mut`](Self::slice_mut).
    ///
    /// # Panics
    /// If that slice was shorter.
    pub fn produce(&mut self, items: usize) {
        match &mut self.writer {
            Some(writer) => {
                self.tags.publish(writer.position() + items as u64);
                if let Some(tap) = self.tap.get() {
                    let position = writer.position();
                    tap.produced(position, &writer.slice_mut()[..items]);
                }
                writer.produce(items);
            }
            None => assert!(items == 0, "produced items on a port that is not open"),
        }
    }

    /// Puts a tag on item `index` of [`slice_mut`](Self::slice_mut), before it is produced. It
    /// follows the tags that are forwarded to that item, and those put on it before.
    pub fn tag(&mut self, index: usize, key: Key, value: impl Into<TagValue>) {
        let position = self.position();
        let offset = position.saturating_add(index as u64);
        let tag = Tag { offset, key, value: value.into() };
        if let Some(tap) = self.tap.get() {
            tap.tagged(&tag);
        }
        self.tags.put(tag, position);
    }
}

/// What a block can do with either port.
macro_rules! either_port_of_block {
    ($Port:ident, $end:ident) => {
        impl<T: Item> $Port<T> {
            /// Makes a port that wants at least one item, or room for one, per call.
            #[must_use]
            pub fn new() -> Self {
                Self::with_min_items(1)
            }

            /// Changes the least number of items, or the least room. The ring is sized for the
            /// number stated before the graph starts; a larger one later is cut to the ring's
            /// capacity.
            pub fn set_min_items(&mut self, min_items: usize) {
                let capacity = self.$end.as_ref().map_or(usize::MAX, |end| end.capacity());
                self.min_items = min_items.min(capacity);
                self.tell_wanted();
            }

            /// Returns the number of items that passed the port since the start: the
            /// [offset](Tag::offset) of the first of the slice.
            #[must_use]
            pub fn position(&self) -> u64 {
                self.$end.as_ref().map_or(0, |end| end.position())
            }

            /// Publishes the wanted number of items in the ring: the runtime reads the ring, not
            /// the port, to decide whether to call the block.
            fn tell_wanted(&mut self) {
                if let Some(end) = &mut self.$end {
                    end.want(self.min_items);
                }
            }
        }

        impl<T: Item> Default for $Port<T> {
            fn default() -> Self {
                Self::new()
            }
        }
    };
}

either_port_of_block!(In, reader);
either_port_of_block!(Out, writer);

/// What the runtime asks of either port.
macro_rules! either_port {
    ($end:ident, $Cursor:ident, $View:ident) => {
        fn item_type(&self) -> ItemType {
            ItemType::of::<T>()
        }

        fn min_items(&self) -> usize {
            self.min_items
        }

        fn view(&self) -> Option<$View> {
            self.$end.as_ref().map(|end| end.view())
        }

        fn is_untagged(&self) -> bool {
            self.tags.is_empty()
        }

        fn resume(&mut self, cursor: $Cursor) {
            if let Some(end) = &mut self.$end {
                end.resume(cursor);
            }
        }
    };
}

/// The reading side's part of a connection: reader and tags.
type Inlet<T> = (Reader<T>, TagReceiver);

impl<T: Item> InputPort for In<T> {
    either_port!(reader, Consumer, ConsumerView);

    fn bypass(&mut self) -> Option<Consumer> {
        self.reader.as_mut()?.bypass()
    }

    fn tag_news(&self) -> Option<TagChangeFlag> {
        self.tags.news()
    }

    fn fetch_tags(&mut self) -> Fetched {
        let seen = self.reader.as_ref().map_or(0, Reader::available);
        self.tags.fetch(self.position() + seen as u64)
    }

    fn forward_tags(&mut self, to: &mut dyn FnMut(Tag)) {
        self.tags.forward().for_each(to);
    }

    fn attach(&mut self, inlet: Box<dyn Any + Send>) -> bool {
        let Ok(inlet) = inlet.downcast::<Inlet<T>>() else { return false };
        let (reader, tags) = *inlet;
        self.reader = Some(reader);
        self.tags.attach(tags);
        self.tell_wanted();
        true
    }

    fn attach_feeder(&mut self, items: usize) -> Result<Box<dyn MockWriter>, RingError> {
        let (writer, mut readers) = ring::<T>(&RingOptions::items(items))?;
        let (sender, receiver) = queue(QUEUE_TAGS);
        self.reader = readers.pop();
        self.tags.attach(receiver);
        self.tell_wanted();
        Ok(Box::new(MockInput::new(writer, sender)))
    }

    fn close(&mut self) {
        if let Some(reader) = &mut self.reader {
            reader.close();
        }
        self.tags.close();
    }
}

impl<T: Item> OutputPort for Out<T> {
    either_port!(writer, Producer, ProducerView);

    fn bypass(&mut self) -> Option<Producer> {
        // A tap sees what `produce` sees, and items of a lane do not pass there.
        let writer = self.writer.as_mut().filter(|_| self.tap.is_empty());
        writer?.bypass()
    }

    fn tap(&mut self, tap: Box<dyn Any + Send>) -> bool {
        let Ok(tap) = tap.downcast::<Box<dyn OutputTap<T>>>() else { return false };
        self.tap = TapSlot::new(*tap);
        true
    }

    fn hold_tag(&mut self, tag: Tag, origin: (u16, Tag)) {
        let position = self.position();
        self.tags.hold(tag, origin, position);
    }

    fn turn_tags(&mut self, rank: u16, shift: TagShift, was: Conversion, now: Conversion) {
        self.tags.turn((rank, self.position()), shift, (was, now));
    }

    fn open(&mut self, options: &RingOptions) -> Result<Vec<Box<dyn Any + Send>>, RingError> {
        let (writer, readers) = ring::<T>(options)?;
        let (senders, receivers): (_, Vec<_>) = readers.iter().map(|_| queue(QUEUE_TAGS)).unzip();
        self.writer = Some(writer);
        self.tags.open(senders);
        self.tell_wanted();
        let inlets = readers.into_iter().zip(receivers);
        Ok(inlets.map(|inlet: Inlet<T>| Box::new(inlet) as Box<dyn Any + Send>).collect())
    }

    fn open_collector(&mut self, items: usize) -> Result<Box<dyn Collector>, RingError> {
        let (writer, mut readers) = ring::<T>(&RingOptions::items(items))?;
        let (sender, receiver) = queue(QUEUE_TAGS);
        self.writer = Some(writer);
        self.tags.open(vec![sender]);
        self.tell_wanted();
        let reader = readers.pop().expect("a ring for one reader has one reader");
        Ok(Box::new(Collection::new(reader, receiver)))
    }

    fn close(&mut self) {
        if let Some(writer) = &mut self.writer {
            writer.close();
        }
    }
}
