//! The form of a graph, without its blocks.

use super::{BlockCost, EdgeCost, Profile};
use crate::graph::Graph;
use crate::rate::ItemRatio;

/// Items that pass a source, for a graph without measurements.
const NOMINAL_ITEMS: u64 = 1_000_000;
/// Items of a call, for a graph without measurements.
const NOMINAL_BATCH: u64 = 8192;

/// Blocks by name, and their connections.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Shape {
    /// Blocks, in the order they were added.
    pub blocks: Vec<BlockShape>,
    /// Connections, in the order they were made.
    pub edges: Vec<EdgeShape>,
}

/// One block.
#[derive(Clone, Debug, PartialEq)]
pub struct BlockShape {
    /// Name of the block.
    pub name: String,
    /// Items out for items in.
    pub rate: ItemRatio,
    /// Estimated time of one item, nanoseconds ([`BlockFacts`](crate::BlockFacts)).
    pub ns_per_item: f64,
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
    /// Returns the shape of a graph.
    #[must_use]
    pub fn of(graph: &Graph) -> Self {
        let blocks = graph.nodes.iter().map(|node| BlockShape {
            name: node.name.clone(),
            rate: node.facts.rate,
            ns_per_item: node.facts.ns_per_item,
        });
        let edges = graph.edges.iter().map(|edge| EdgeShape {
            from: edge.from.node,
            to: edge.to.node,
            output: graph.output_name(edge.from),
            input: graph.input_name(edge.to),
            item_bytes: graph.output(edge.from).item.size_bytes() as u64,
        });
        Self { blocks: blocks.collect(), edges: edges.collect() }
    }

    /// Returns the shape of the graph that a profile was measured on; the rates follow from its
    /// counts. Connections of blocks that the profile does not have are left out.
    #[must_use]
    pub fn of_profile(profile: &Profile) -> Self {
        let block = |cost: &BlockCost| BlockShape {
            name: cost.name.clone(),
            rate: ItemRatio::ONE,
            ns_per_item: cost.ns_per_item(),
        };
        let mut shape =
            Self { blocks: profile.blocks.iter().map(block).collect(), edges: Vec::new() };
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

    /// Returns the position of the block of this name.
    #[must_use]
    pub fn position(&self, name: &str) -> Option<usize> {
        self.blocks.iter().position(|block| block.name == name)
    }

    /// Returns the rank of each block in the order that items pass: larger than that of every block
    /// before it.
    #[must_use]
    pub fn ranks(&self) -> Vec<usize> {
        let mut ranks = vec![0; self.blocks.len()];
        // A shape without cycles is stable after as many rounds as its longest path.
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

    /// Returns the position of each block when each path is followed to its end before the next:
    /// parallel paths stay apart.
    #[must_use]
    pub fn depth_first(&self) -> Vec<usize> {
        let count = self.blocks.len();
        let mut waits: Vec<usize> = (0..count).map(|node| self.into(node).count()).collect();
        let mut ready: Vec<usize> = (0..count).rev().filter(|node| waits[*node] == 0).collect();
        let mut places = vec![count; count];
        for place in 0..count {
            let Some(node) = ready.pop() else { break };
            places[node] = place;
            for edge in self.edges.iter().rev().filter(|edge| edge.from == node) {
                waits[edge.to] -= 1;
                if waits[edge.to] == 0 {
                    ready.push(edge.to);
                }
            }
        }
        places
    }

    /// Returns the profile for a graph that was never measured: items flow by the blocks' rates,
    /// and each takes as long as its block estimates.
    #[must_use]
    pub fn nominal(&self) -> Profile {
        let items = self.nominal_items();
        let blocks = self.blocks.iter().enumerate().map(|(node, block)| {
            let mut cost = BlockCost {
                name: block.name.clone(),
                calls: NOMINAL_ITEMS / NOMINAL_BATCH,
                items_in: self.into(node).map(|edge| items[edge.from]).sum(),
                items_out: items[node],
                ..BlockCost::default()
            };
            cost.busy_ns = (cost.items() as f64 * block.ns_per_item) as u64;
            cost
        });
        let edges = self.edges.iter().map(|edge| EdgeCost {
            from: edge.output.clone(),
            to: edge.input.clone(),
            item_bytes: edge.item_bytes,
            items: items[edge.from],
            ..EdgeCost::default()
        });
        Profile { elapsed_s: 0.0, blocks: blocks.collect(), edges: edges.collect() }
    }

    /// Returns the items that each block produces at each of its outputs.
    fn nominal_items(&self) -> Vec<u64> {
        let ranks = self.ranks();
        let mut order: Vec<usize> = (0..self.blocks.len()).collect();
        order.sort_by_key(|node| ranks[*node]);
        let mut items = vec![NOMINAL_ITEMS; self.blocks.len()];
        for node in order {
            if let Some(come) = self.into(node).map(|edge| items[edge.from]).max() {
                items[node] = self.blocks[node].rate.map(come).max(1);
            }
        }
        items
    }

    fn into(&self, node: usize) -> impl Iterator<Item = &EdgeShape> {
        self.edges.iter().filter(move |edge| edge.to == node)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blocks::{Copy, Head, NullSink, NullSource};

    fn chain() -> Shape {
        let mut graph = Graph::new();
        graph.add("sink", NullSink::<f32>::new()).unwrap();
        graph.add("source", NullSource::<f32>::new()).unwrap();
        graph.add("copy", Copy::<f32>::new()).unwrap();
        graph.add("head", Head::<f32>::new(10)).unwrap();
        graph.chain(&["source", "copy", "head", "sink"]).unwrap();
        Shape::of(&graph)
    }

    #[test]
    fn ranks_follow_the_items() {
        let shape = chain();
        assert_eq!(shape.ranks(), [3, 0, 1, 2]);
        assert_eq!(shape.depth_first(), [3, 0, 1, 2]);
        assert_eq!((shape.edges[0].output.as_str(), shape.edges[0].item_bytes), ("source.out", 4));
    }

    #[test]
    fn without_measurement_items_flow_by_the_rates_and_cost_what_their_block_says() {
        let mut shape = chain();
        shape.blocks[2].rate = ItemRatio::decimate(10);
        shape.blocks[2].ns_per_item = 7.0;
        shape.blocks[3].ns_per_item = 20.0;
        let profile = shape.nominal();
        let items = |name: &str| profile.block(name).unwrap().items_in;
        assert_eq!((items("copy"), items("head"), items("sink")), (1_000_000, 100_000, 100_000));
        let ns = |name: &str| profile.block(name).unwrap().busy_ns;
        assert_eq!((ns("copy"), ns("head")), (7_000_000, 2_000_000));
        assert_eq!(Shape::of_profile(&profile).edges, shape.edges);
    }
}
