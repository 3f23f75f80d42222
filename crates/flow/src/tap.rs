//! Taps: code that sees the items of an output as they are produced, without a ring of its own.
//!
//! A tap can neither hold up the graph nor change it: no reader is added, no plan and no end of a
//! block depends on it. Without a tap an output pays one comparison for each call.

use crate::graph::{Graph, GraphError, PortDirection};
use crate::item::{Item, ItemType};
use crate::port::each_port;
use crate::tag::Tag;
use std::any::Any;
use std::fmt;

/// Code that sees the items of one output, on the thread of its block: it must not wait, allocate
/// or lock.
pub trait OutputTap<T: Item>: Send {
    /// Sees a tag that the block puts on an item, before that item is produced. Tags that the
    /// runtime forwards from an input are not among them.
    fn tagged(&mut self, _tag: &Tag) {}

    /// Sees items before any reader; `position` is the [offset](Tag::offset) of the first.
    fn produced(&mut self, position: u64, items: &[T]);
}

/// The place of a tap at an output.
pub(crate) struct TapSlot<T>(Option<Box<dyn OutputTap<T>>>);

impl<T: Item> TapSlot<T> {
    pub(crate) fn new(tap: Box<dyn OutputTap<T>>) -> Self {
        Self(Some(tap))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    #[inline]
    pub(crate) fn get(&mut self) -> Option<&mut dyn OutputTap<T>> {
        match &mut self.0 {
            Some(tap) => Some(&mut **tap),
            None => None,
        }
    }
}

impl<T> Default for TapSlot<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<T> fmt::Debug for TapSlot<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "tapped" } else { "free" })
    }
}

impl Graph {
    /// Returns the type of the items of an output, given as for [`connect`](Self::connect).
    ///
    /// # Errors
    /// [`GraphError`] for an output that does not exist.
    pub fn output_item(&self, output: &str) -> Result<ItemType, GraphError> {
        Ok(self.output(self.find(output, PortDirection::Output)?).item)
    }

    /// Puts a tap on an output, given as for [`connect`](Self::connect), in place of an earlier
    /// one. Blocks behind a tapped output are not part of a [fused chain](crate::lane) with it.
    ///
    /// # Errors
    /// [`GraphError`] for an output that does not exist, or whose items are of another type.
    pub fn tap<T: Item>(
        &mut self,
        output: &str,
        tap: impl OutputTap<T> + 'static,
    ) -> Result<(), GraphError> {
        let end = self.find(output, PortDirection::Output)?;
        let tap: Box<dyn OutputTap<T>> = Box::new(tap);
        let mut tap: Option<Box<dyn Any + Send>> = Some(Box::new(tap));
        let (mut port, mut taken) = (0, false);
        let each = |_: &str, output: &mut dyn crate::port::OutputPort| {
            if port == end.port {
                taken = tap.take().is_some_and(|tap| output.tap(tap));
            }
            port += 1;
        };
        each_port(&mut *self.nodes[end.node].block, |_, _| (), each);
        if taken {
            return Ok(());
        }
        Err(GraphError::ItemTypes {
            output: self.output_name(end),
            output_type: self.output(end).item.to_string(),
            input: "a tap".to_owned(),
            input_type: ItemType::of::<T>().to_string(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blocks::{Copy, NullSink, VectorSource};
    use crate::tag::keys;
    use crate::{Block, BlockError, Context, Out, Plan, Ports, Work};
    use std::sync::mpsc::{Sender, channel};

    struct Seen(Sender<(u64, Vec<u32>)>, Sender<Tag>);

    impl OutputTap<u32> for Seen {
        fn tagged(&mut self, tag: &Tag) {
            self.1.send(*tag).unwrap();
        }

        fn produced(&mut self, position: u64, items: &[u32]) {
            self.0.send((position, items.to_vec())).unwrap();
        }
    }

    #[test]
    fn a_tap_sees_every_item_once_and_changes_nothing() {
        let items: Vec<u32> = (0..10_000).collect();
        for output in ["source", "copy"] {
            let mut graph = Graph::new();
            graph.add("source", VectorSource::new(items.clone())).unwrap();
            graph.add("copy", Copy::<u32>::new()).unwrap();
            graph.add("more", Copy::<u32>::new()).unwrap();
            graph.add("sink", NullSink::<u32>::new()).unwrap();
            graph.chain(&["source", "copy", "more", "sink"]).unwrap();
            let ((batches, seen), (tags, _)) = (channel(), channel());
            graph.tap(output, Seen(batches, tags)).unwrap();
            let end = graph.run(&Plan::default()).unwrap();
            assert_eq!(end.block("sink").unwrap().items_in, 10_000);
            let mut all = Vec::new();
            for (position, batch) in seen {
                assert_eq!(position, all.len() as u64);
                all.extend(batch);
            }
            assert_eq!(all, items, "{output}");
        }
    }

    #[test]
    fn only_an_output_of_the_same_items_is_tapped() {
        let mut graph = Graph::new();
        graph.add("source", VectorSource::new(vec![0u8; 3])).unwrap();
        let tap = || Seen(channel().0, channel().0);
        let error = graph.tap("source", tap()).unwrap_err().to_string();
        assert!(error.contains("u8") && error.contains("u32"), "{error}");
        assert!(graph.tap("nothing", tap()).is_err());
        assert_eq!(graph.output_item("source").unwrap(), ItemType::of::<u8>());
    }

    #[derive(Ports)]
    struct Tagging {
        output: Out<u32>,
    }

    impl Block for Tagging {
        fn work(&mut self, _: &mut Context) -> Result<Work, BlockError> {
            self.output.slice_mut()[0] = 7;
            self.output.tag(0, keys::LOSS_ITEMS, 5u64);
            self.output.produce(1);
            Ok(Work::Finished)
        }
    }

    #[test]
    fn a_tap_sees_the_tags_of_the_block() {
        let mut graph = Graph::new();
        graph.add("source", Tagging { output: Out::new() }).unwrap();
        graph.add("sink", NullSink::<u32>::new()).unwrap();
        graph.chain(&["source", "sink"]).unwrap();
        let ((batches, seen), (tags, tagged)) = (channel(), channel());
        graph.tap("source", Seen(batches, tags)).unwrap();
        graph.run(&Plan::default()).unwrap();
        assert_eq!(seen.iter().collect::<Vec<_>>(), [(0, vec![7])]);
        let tags: Vec<_> = tagged.iter().map(|tag| (tag.offset, tag.key)).collect();
        assert_eq!(tags, [(0, keys::LOSS_ITEMS)]);
    }
}
