//! The form of a graph, without its blocks.

use crate::graph::Graph;
use crate::profile::{BlockCost, EdgeCost, Profile};

/// Items that pass a source while nothing is measured.
const NOMINAL_ITEMS: u64 = 1_000_000;
/// What a block costs an item while nothing is measured, nanoseconds.
const NOMINAL_NS: u64 = 5;
/// Items of a call while nothing is measured.
const NOMINAL_BATCH: u64 = 8192;

/// Blocks by name, and what is connected to what.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Shape {
    /// Blocks, in the order they were added.
    pub blocks: Vec<BlockShape>,
    /// Connections, in the order they were made.
    pub edges: Vec<EdgeShape>,
}

/// One block.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct BlockShape {
    /// Name of the block.
    pub name: String,
}

/// One connection.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct EdgeShape {
    /// The block that writes, by position.
    pub from: usize,
    /// The block that reads, by position.
    pub to: usize,
    /// Writing end, `block.port`.
    pub output: String,
    /// Reading end, `block.port`.
    pub input: String,
    /// Size of an item, bytes.
    pub item_bytes: u64,
}

impl Shape {
    /// The shape of a graph.
    #[must_use]
    pub fn of(graph: &Graph) -> Self {
        let blocks = graph.block_names().map(|name| BlockShape { name: name.to_owned() });
        let edges = graph.edges.iter().map(|edge| EdgeShape {
            from: edge.from.node,
            to: edge.to.node,
            output: graph.output_name(edge.from),
            input: graph.input_name(edge.to),
            item_bytes: graph.output(edge.from).item.size_bytes() as u64,
        });
        Self { blocks: blocks.collect(), edges: edges.collect() }
    }

    /// The shape of the graph that a profile was measured on. Connections of blocks that the
    /// profile does not have are left out.
    #[must_use]
    pub fn of_profile(profile: &Profile) -> Self {
        let name = |block: &BlockCost| BlockShape { name: block.name.clone() };
        let mut shape =
            Self { blocks: profile.blocks.iter().map(name).collect(), edges: Vec::new() };
        let edges = profile.edges.iter().filter_map(|edge| {
            Some(EdgeShape {
                from: shape.position(edge.writer())?,
                to: shape.position(edge.reader())?,
                output: edge.from.clone(),
                input: edge.to.clone(),
                item_bytes: edge.item_bytes,
            })
        });
        shape.edges = edges.collect();
        shape
    }

    /// The block of this name.
    #[must_use]
    pub fn position(&self, name: &str) -> Option<usize> {
        self.blocks.iter().position(|block| block.name == name)
    }

    /// Where each block stands in the order that items pass: more than every block before it.
    #[must_use]
    pub fn ranks(&self) -> Vec<usize> {
        let mut ranks = vec![0; self.blocks.len()];
        // A shape without cycles settles after as many rounds as its longest way.
        for _ in 0..self.blocks.len() {
            let mut settled = true;
            for edge in &self.edges {
                if ranks[edge.to] <= ranks[edge.from] && edge.to != edge.from {
                    ranks[edge.to] = ranks[edge.from] + 1;
                    settled = false;
                }
            }
            if settled {
                break;
            }
        }
        ranks
    }

    /// The profile for a graph that was never measured: every block costs the same.
    #[must_use]
    pub fn nominal(&self) -> Profile {
        let blocks = self.blocks.iter().enumerate().map(|(node, block)| {
            let inputs = self.edges.iter().filter(|edge| edge.to == node).count() as u64;
            let outputs = self.edges.iter().filter(|edge| edge.from == node).count() as u64;
            BlockCost {
                name: block.name.clone(),
                calls: NOMINAL_ITEMS / NOMINAL_BATCH,
                items_in: inputs * NOMINAL_ITEMS,
                items_out: outputs.min(1) * NOMINAL_ITEMS,
                busy_ns: NOMINAL_ITEMS * NOMINAL_NS,
                working_set_bytes: 0,
            }
        });
        let edges = self.edges.iter().map(|edge| EdgeCost {
            from: edge.output.clone(),
            to: edge.input.clone(),
            item_bytes: edge.item_bytes,
            items: NOMINAL_ITEMS,
            ..EdgeCost::default()
        });
        Profile { elapsed_s: 0.0, blocks: blocks.collect(), edges: edges.collect() }
    }
}
