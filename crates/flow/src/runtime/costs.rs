//! The cost model of a run: counters that are always on, as a [`Profile`].

use super::RunningGraph;
use super::stats::{BlockEntry, EdgeEntry, FILL_ONE, RunCounters};
use crate::graph::PortId;
use crate::observe::{BlockCost, EdgeCost, Profile};

impl RunningGraph {
    /// Returns the costs of the graph so far; see [`Profile::since`] for a period. Reading does not
    /// disturb the threads.
    #[must_use]
    pub fn profile(&self) -> Profile {
        self.counters.profile()
    }
}

impl RunCounters {
    pub(super) fn profile(&self) -> Profile {
        let edges: Vec<EdgeCost> = self.edges.iter().map(|edge| self.edge(edge)).collect();
        let blocks = self.blocks.iter().enumerate().map(|(node, entry)| {
            let touches = |edge: &&EdgeEntry| edge.to.0.node == node;
            let read = self.edges.iter().filter(touches).map(|edge| self.read_bytes(edge));
            self.block(entry, read.sum::<u64>() + self.written_bytes(node))
        });
        Profile { elapsed_s: self.began.elapsed().as_secs_f64(), blocks: blocks.collect(), edges }
    }

    fn block(&self, entry: &BlockEntry, bytes: u64) -> BlockCost {
        let calls = entry.counters.calls.get();
        BlockCost {
            name: entry.name.clone(),
            calls,
            items_in: entry.views.items_in(),
            items_out: entry.views.items_out(),
            busy_ns: entry.counters.busy_ns.get(),
            working_set_bytes: bytes / calls.max(1) + entry.held_bytes,
        }
    }

    fn edge(&self, edge: &EdgeEntry) -> EdgeCost {
        let (writer, reader) = (&self.blocks[edge.from.0.node], &self.blocks[edge.to.0.node]);
        let input = &reader.counters.inputs[edge.to.0.port];
        let view = &reader.views.inputs[edge.to.0.port];
        let looks = input.looks.get();
        EdgeCost {
            from: edge.from.1.clone(),
            to: edge.to.1.clone(),
            item_bytes: edge.item_bytes,
            items: view.position(),
            capacity_items: view.capacity(),
            fill: input.fill.get() as f64 / (looks.max(1) * FILL_ONE) as f64,
            looks,
            starved: input.starved.get(),
            blocked: writer.counters.blocked[edge.from.0.port].get(),
        }
    }

    fn read_bytes(&self, edge: &EdgeEntry) -> u64 {
        let view = &self.blocks[edge.to.0.node].views.inputs[edge.to.0.port];
        view.position().saturating_mul(edge.item_bytes)
    }

    /// Returns the bytes that a block wrote, each output once, whatever the number of its readers.
    fn written_bytes(&self, node: usize) -> u64 {
        let outputs = self.blocks[node].views.outputs.iter().enumerate();
        let bytes = outputs.filter_map(|(port, view)| {
            let edge = self.edges.iter().find(|edge| edge.from.0 == PortId { node, port })?;
            Some(view.position().saturating_mul(edge.item_bytes))
        });
        bytes.sum()
    }
}
