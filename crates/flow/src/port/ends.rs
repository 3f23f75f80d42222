//! The far ends of ports that no graph connects, for [`Mock`](crate::Mock).

use super::{Collector, MockWriter};
use crate::item::Item;
use crate::tag::Tag;
use crate::tag::queue::{TagReceiver, TagSender};
use millstream_ring::{Reader, Writer};
use std::any::Any;
use std::collections::VecDeque;

/// Items on their way into an input.
pub(crate) struct MockInput<T: Item> {
    writer: Writer<T>,
    tags: TagSender,
    pub(crate) held: VecDeque<T>,
    ending: bool,
}

impl<T: Item> MockInput<T> {
    pub(super) fn new(writer: Writer<T>, tags: TagSender) -> Self {
        Self { writer, tags, held: VecDeque::new(), ending: false }
    }
}

impl<T: Item> MockWriter for MockInput<T> {
    fn as_any(&mut self) -> &mut dyn Any {
        self
    }

    fn refill(&mut self) -> usize {
        let room = self.writer.slice_mut();
        let items = room.len().min(self.held.len());
        for (to, from) in room.iter_mut().zip(self.held.drain(..items)) {
            *to = from;
        }
        self.writer.produce(items);
        if self.ending && self.held.is_empty() {
            self.writer.close();
        }
        items
    }

    fn tag(&mut self, tag: Tag) {
        self.tags.push(tag);
    }

    fn end(&mut self) {
        self.ending = true;
        self.refill();
    }
}

/// Items that came out of an output.
pub(crate) struct Collection<T: Item> {
    reader: Reader<T>,
    tags: TagReceiver,
    pub(crate) items: Vec<T>,
}

impl<T: Item> Collection<T> {
    pub(super) fn new(reader: Reader<T>, tags: TagReceiver) -> Self {
        Self { reader, tags, items: Vec::new() }
    }
}

impl<T: Item> Collector for Collection<T> {
    fn as_any(&mut self) -> &mut dyn Any {
        self
    }

    fn drain(&mut self) -> usize {
        let new = self.reader.slice();
        let items = new.len();
        self.items.extend_from_slice(new);
        self.reader.consume(items);
        items
    }

    fn take_tags(&mut self) -> Vec<Tag> {
        std::iter::from_fn(|| self.tags.pop()).collect()
    }
}
