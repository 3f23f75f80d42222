//! Puts taps on the outputs of a graph.

use crate::graph::{Graph, GraphError, PortDirection};
use crate::item::{Item, ItemType};
use crate::port::{OutputPort, OutputTap, each_port};
use std::any::Any;

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
        let each = |_: &str, output: &mut dyn OutputPort| {
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
    use crate::tag::{Tag, keys};
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
