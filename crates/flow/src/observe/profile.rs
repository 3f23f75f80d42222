//! Measured costs of a graph: the runtime records them; the partitioner, the tuner and the live
//! view read them.
//!
//! Times are of the block alone on one core, in nanoseconds; items count each item once per port
//! that it passes. A profile is the difference of two snapshots, so it describes a period of a run.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Costs of every block and connection over a period.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct Profile {
    /// Length of the period, seconds of wall clock.
    pub elapsed_s: f64,
    /// Blocks, in the order they were added to the graph.
    pub blocks: Vec<BlockCost>,
    /// Connections, in the order they were made.
    pub edges: Vec<EdgeCost>,
}

/// Work and cost of one block.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct BlockCost {
    /// Name of the block.
    pub name: String,
    /// Calls of `work`.
    pub calls: u64,
    /// Items consumed, all inputs together.
    pub items_in: u64,
    /// Items produced, all outputs together.
    pub items_out: u64,
    /// Time in `work`, nanoseconds.
    pub busy_ns: u64,
    /// Bytes that one call touches, by estimate: its slices and the bytes that the block holds.
    pub working_set_bytes: u64,
}

/// Items that passed one connection, and its fill.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct EdgeCost {
    /// Writing end, `block.port`.
    pub from: String,
    /// Reading end, `block.port`.
    pub to: String,
    /// Size of an item, bytes.
    pub item_bytes: u64,
    /// Items that the reader consumed.
    pub items: u64,
    /// Items that fit into the ring.
    pub capacity_items: u64,
    /// Mean share of the capacity that was filled at the reader's polls, 0 to 1.
    pub fill: f64,
    /// Number of polls in this mean: those before timed calls.
    #[serde(default)]
    pub looks: u64,
    /// Polls of the reader that found fewer items than it wanted.
    pub starved: u64,
    /// Polls of the writer that found less room than it wanted.
    pub blocked: u64,
}

impl Profile {
    /// Returns the block of this name.
    #[must_use]
    pub fn block(&self, name: &str) -> Option<&BlockCost> {
        self.blocks.iter().find(|block| block.name == name)
    }

    /// Returns the nanoseconds for an item of every block that worked, but not of those in
    /// `without`: for the costs of a [plan](crate::Plan::ns_per_item).
    #[must_use]
    pub fn ns_per_item_of_each(&self, without: &[String]) -> BTreeMap<String, f64> {
        let known = self.blocks.iter().filter(|block| !without.contains(&block.name));
        let worked = known.filter(|block| block.busy_ns > 0 && block.items() > 0);
        worked.map(|block| (block.name.clone(), block.ns_per_item())).collect()
    }

    /// Returns the difference to `earlier`, a profile of the same run.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let blocks = self.blocks.iter().map(|block| {
            earlier.block(&block.name).map_or_else(|| block.clone(), |before| block.since(before))
        });
        let edges = self.edges.iter().map(|edge| {
            let before = earlier.edges.iter().find(|before| before.to == edge.to);
            before.map_or_else(|| edge.clone(), |before| edge.since(before))
        });
        Self {
            elapsed_s: self.elapsed_s - earlier.elapsed_s,
            blocks: blocks.collect(),
            edges: edges.collect(),
        }
    }
}

impl BlockCost {
    /// Returns the difference; the working set remains the mean of the whole run.
    fn since(&self, earlier: &Self) -> Self {
        Self {
            name: self.name.clone(),
            calls: self.calls.saturating_sub(earlier.calls),
            items_in: self.items_in.saturating_sub(earlier.items_in),
            items_out: self.items_out.saturating_sub(earlier.items_out),
            busy_ns: self.busy_ns.saturating_sub(earlier.busy_ns),
            working_set_bytes: self.working_set_bytes,
        }
    }

    /// Returns the items of the busier side, by which the cost of a block is counted.
    #[must_use]
    pub fn items(&self) -> u64 {
        self.items_in.max(self.items_out)
    }

    /// Returns the nanoseconds for one item; 0 when no item passed.
    #[must_use]
    pub fn ns_per_item(&self) -> f64 {
        ratio(self.busy_ns, self.items())
    }
}

impl EdgeCost {
    fn since(&self, earlier: &Self) -> Self {
        let looks = self.looks.saturating_sub(earlier.looks);
        let filled = self.fill * self.looks as f64 - earlier.fill * earlier.looks as f64;
        Self {
            items: self.items.saturating_sub(earlier.items),
            fill: if looks == 0 { self.fill } else { (filled / looks as f64).clamp(0.0, 1.0) },
            looks,
            starved: self.starved.saturating_sub(earlier.starved),
            blocked: self.blocked.saturating_sub(earlier.blocked),
            ..self.clone()
        }
    }

    /// Returns the bytes of its buffer that the items of this period used: of the ring, which they
    /// go round in. In a fused chain that is the memory of a batch, because no ring is polled
    /// there; `reader` is the reading block's cost.
    #[must_use]
    pub fn buffer_bytes(&self, reader: &BlockCost) -> u64 {
        let items = match self.looks {
            0 => self.items.div_ceil(reader.calls.max(1)),
            _ => self.items,
        };
        items.min(self.capacity_items).saturating_mul(self.item_bytes)
    }

    /// Returns the block that writes.
    #[must_use]
    pub fn writer(&self) -> &str {
        block_of(&self.from)
    }

    /// Returns the block that reads.
    #[must_use]
    pub fn reader(&self) -> &str {
        block_of(&self.to)
    }
}

fn block_of(end: &str) -> &str {
    end.split_once('.').map_or(end, |(block, _)| block)
}

fn ratio(of: u64, to: u64) -> f64 {
    if to == 0 { 0.0 } else { of as f64 / to as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_are_counted_by_the_busier_side() {
        let (items_in, items_out) = (1000, 250);
        let block =
            BlockCost { calls: 10, items_in, items_out, busy_ns: 5000, ..BlockCost::default() };
        assert_eq!(block.ns_per_item(), 5.0);
        let source = BlockCost { items_out: 500, busy_ns: 1000, ..BlockCost::default() };
        assert_eq!(source.ns_per_item(), 2.0);
        let named =
            |name: &str, block: &BlockCost| BlockCost { name: name.into(), ..block.clone() };
        let idle = BlockCost::default();
        let blocks = vec![named("a", &block), named("s", &source), named("idle", &idle)];
        let profile = Profile { blocks, ..Profile::default() };
        assert_eq!(profile.ns_per_item_of_each(&["s".into()]), [("a".into(), 5.0)].into());
        assert_eq!(profile.ns_per_item_of_each(&[]).len(), 2, "none of an idle block");
    }

    #[test]
    fn a_stretch_is_the_difference_of_two_moments() {
        let at = |n: u64, fill: f64| Profile {
            elapsed_s: n as f64,
            blocks: vec![BlockCost {
                name: "a".into(),
                calls: n,
                items_in: 10 * n,
                busy_ns: 7 * n,
                ..BlockCost::default()
            }],
            edges: vec![EdgeCost {
                from: "s.out".into(),
                to: "a.in".into(),
                items: 10 * n,
                fill,
                looks: n,
                starved: 3 * n,
                ..EdgeCost::default()
            }],
        };
        // Ten polls with a mean of 0.4, then ten with 0.8.
        let stretch = at(20, 0.6).since(&at(10, 0.4));
        let (block, edge) = (&stretch.blocks[0], &stretch.edges[0]);
        assert_eq!((stretch.elapsed_s, block.calls, block.items_in), (10.0, 10, 100));
        assert_eq!((block.busy_ns, edge.items, edge.starved), (70, 100, 30));
        assert!((edge.fill - 0.8).abs() < 1e-9, "{}", edge.fill);
    }

    #[test]
    fn the_buffer_in_use_is_the_ring_as_far_as_items_went() {
        let reader = BlockCost { calls: 10, ..BlockCost::default() };
        let edge = |items, looks| EdgeCost {
            item_bytes: 8,
            items,
            capacity_items: 1000,
            looks,
            ..EdgeCost::default()
        };
        assert_eq!(edge(100_000, 3).buffer_bytes(&reader), 8000, "it went round");
        assert_eq!(edge(100, 3).buffer_bytes(&reader), 800);
        assert_eq!(edge(1001, 0).buffer_bytes(&reader), 808, "a batch of a fused chain");
        assert_eq!(edge(0, 0).buffer_bytes(&BlockCost::default()), 0);
    }

    #[test]
    fn an_edge_names_its_blocks() {
        let edge = EdgeCost { from: "a.out".into(), to: "b.in".into(), ..EdgeCost::default() };
        assert_eq!((edge.writer(), edge.reader()), ("a", "b"));
    }
}
