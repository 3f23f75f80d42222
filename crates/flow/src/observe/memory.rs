//! The memory of a graph: how much of a stream must come before an item, so that the result for
//! that item is the same as with all that came before.
//!
//! Work on one long recording can be split by this: each part begins earlier than its own samples,
//! and what it makes of these earlier ones is dropped. Filters and interleavers have a memory of so
//! many items. Loops and averages forget gradually, so what they state is how long they take to
//! settle; whoever joins parts compares where they overlap.
//!
//! A block states its memory in [`BlockFacts`](crate::BlockFacts). One block of a path also
//! numbers: it puts the tag [`SOURCE_ITEM`](crate::keys::SOURCE_ITEM) on each group of its results,
//! or a block behind it does.

use crate::graph::{Graph, GraphError, PortDirection};
use crate::memory::{BlockMemory, MemorySpan, Numbering};

/// The memory of the path from a source to a sink, in items of the source.
#[derive(Clone, Debug, PartialEq)]
pub struct PathMemory {
    /// Every reason, in the order of the path.
    pub stages: Vec<PathStage>,
    /// Items of the source per second.
    pub rate_hz: f64,
    /// Items of the source from one numbered result to the next.
    pub group: f64,
    /// Items of the source for one of the numbers.
    pub unit: f64,
    /// The output at the end of the path, as `block.port`: it has the numbers.
    pub output: String,
}

/// One reason for memory.
#[derive(Clone, Debug, PartialEq)]
pub struct PathStage {
    /// The block.
    pub block: String,
    /// The reason.
    pub what: &'static str,
    /// Items of the source.
    pub items: u64,
}

impl PathMemory {
    /// Returns the sum of all stages, items of the source.
    #[must_use]
    pub fn items(&self) -> u64 {
        self.stages.iter().map(|stage| stage.items).fold(0, u64::saturating_add)
    }
}

/// The reason why the memory of a path is not known.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MemoryError {
    /// A block of the path does not state its memory.
    #[error(
        "the block `{block}` does not state how much of its past it needs, so a recording cannot \
         be split for it"
    )]
    Unknown {
        /// The block.
        block: String,
    },
    /// A block of the path has several inputs, or none although it is not the source.
    #[error(
        "the block `{block}` does not have exactly one input: only a graph that is a chain from \
         its recording to its file can be split"
    )]
    Branched {
        /// The block.
        block: String,
    },
    /// No block numbers the results.
    #[error(
        "no block numbers its results by the samples that they come from, so parts cannot be \
         joined: only a graph with an ATSC receiver (atsc_demod to atsc_derandomizer) can be split"
    )]
    Unnumbered,
    /// A block is not there.
    #[error(transparent)]
    Graph(#[from] GraphError),
}

impl Graph {
    /// Returns the memory of the chain of blocks from `source` to `sink`.
    ///
    /// # Errors
    /// [`MemoryError`]: the blocks are not one chain, or do not state it.
    pub fn memory(&self, source: &str, sink: &str) -> Result<PathMemory, MemoryError> {
        let first = self.find(source, PortDirection::Output)?.node;
        let last = self.find(sink, PortDirection::Input)?.node;
        // The walk below ends only without a circle.
        self.topological_order()?;
        let mut chain = Vec::new();
        let mut node = last;
        while node != first {
            let mut edges = self.edges.iter().filter(|edge| edge.to.node == node);
            let (Some(edge), None) = (edges.next(), edges.next()) else {
                return Err(MemoryError::Branched { block: self.nodes[node].name.clone() });
            };
            chain.push(*edge);
            node = edge.from.node;
        }
        let end = chain.first().ok_or(MemoryError::Unnumbered)?.from;
        let output = self.output_name(end);
        let mut stated = Vec::new();
        // Items of the source for one of the block's input.
        let mut worth = 1.0;
        for edge in chain.iter().rev() {
            let node = &self.nodes[edge.to.node];
            let memory = node.facts.memory.clone();
            let memory = memory.ok_or_else(|| MemoryError::Unknown { block: node.name.clone() })?;
            stated.push((&node.name, memory, worth));
            worth /= node.facts.rate.ratio();
        }
        let numbered = |(_, memory, worth): &(_, BlockMemory, f64)| {
            memory.numbering.map(|numbering| (numbering, *worth))
        };
        let (Numbering { rate_hz, group }, unit) =
            stated.iter().find_map(numbered).ok_or(MemoryError::Unnumbered)?;
        let rate_hz = rate_hz * unit;
        let items = |span: MemorySpan, worth: f64| match span {
            MemorySpan::Items(items) => (items as f64 * worth).ceil() as u64,
            MemorySpan::Seconds(seconds) => (seconds * rate_hz).ceil() as u64,
        };
        let stages = stated.iter().flat_map(|(name, memory, worth)| {
            memory.stages.iter().map(|(what, span)| PathStage {
                block: (*name).clone(),
                what,
                items: items(*span, *worth),
            })
        });
        Ok(PathMemory { stages: stages.collect(), rate_hz, group: group * unit, unit, output })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blocks::{Copy, NullSink, NullSource};
    use crate::{Block, BlockError, BlockFacts, Context, In, ItemRatio, Out, Ports, Work};

    #[derive(Ports)]
    struct Stated {
        input: In<f32>,
        output: Out<f32>,
        memory: Option<BlockMemory>,
        rate: ItemRatio,
    }

    impl Stated {
        fn new(memory: Option<BlockMemory>) -> Self {
            let (input, output) = (In::new(), Out::new());
            Self { input, output, memory, rate: ItemRatio::decimate(10) }
        }
    }

    impl Block for Stated {
        fn work(&mut self, _: &mut Context) -> Result<Work, BlockError> {
            Ok(Work::Finished)
        }

        fn facts(&self, facts: &mut BlockFacts) {
            facts.rate(self.rate);
            facts.memory = self.memory.clone();
        }
    }

    fn graph(a: Option<BlockMemory>, b: Option<BlockMemory>) -> Graph {
        let mut graph = Graph::new();
        graph.add("source", NullSource::<f32>::new()).unwrap();
        graph.add("a", Stated::new(a)).unwrap();
        graph.add("copy", Copy::<f32>::new()).unwrap();
        graph.add("b", Stated::new(b)).unwrap();
        graph.add("sink", NullSink::<f32>::new()).unwrap();
        graph.chain(&["source", "a", "copy", "b", "sink"]).unwrap();
        graph
    }

    #[test]
    fn memories_add_up_in_items_of_the_source() {
        let a = BlockMemory::none().with("taps", MemorySpan::Items(7));
        let b = BlockMemory::none()
            .with("taps", MemorySpan::Items(3))
            .with("loop", MemorySpan::Seconds(0.5))
            .numbering(Numbering { rate_hz: 100.0, group: 4.0 });
        let memory = graph(Some(a), Some(b)).memory("source", "sink").unwrap();
        let items: Vec<_> = memory.stages.iter().map(|stage| stage.items).collect();
        assert_eq!((items, memory.items()), (vec![7, 30, 500], 537));
        assert_eq!((memory.rate_hz, memory.group, memory.unit), (1000.0, 40.0, 10.0));
        assert_eq!(memory.output, "b.out");
    }

    #[test]
    fn what_is_not_known_is_refused_by_name() {
        let of = |a, b| graph(a, b).memory("source", "sink").unwrap_err();
        let none = || Some(BlockMemory::none());
        assert!(matches!(of(none(), None), MemoryError::Unknown { block } if block == "b"));
        assert!(matches!(of(none(), none()), MemoryError::Unnumbered));
        let error = graph(none(), none()).memory("b", "a").unwrap_err();
        assert!(matches!(error, MemoryError::Branched { block } if block == "source"));
        assert!(graph(none(), none()).memory("c", "a").is_err());
        let mut circle = Graph::new();
        ["a", "b"].iter().for_each(|name| circle.add(name, Stated::new(None)).unwrap());
        circle.add("source", NullSource::<f32>::new()).unwrap();
        circle.connect("a.out", "b.in").unwrap();
        circle.connect("b.out", "a.in").unwrap();
        let error = circle.memory("source", "b").unwrap_err();
        assert!(matches!(error, MemoryError::Graph(GraphError::Cycle { .. })), "{error}");
    }
}
