//! Reads the state of a running graph for the watchdog.

use super::RunningGraph;
use super::stats::RunCounters;
use crate::graph::{Graph, PortId};
use crate::observe::{BlockScene, Scene, Stall, Why};
use std::time::{Duration, Instant};

impl RunningGraph {
    /// Returns the blocks that have not moved for `limit`, as far as the polls until `now` show:
    /// call it several times within a limit. Empty for a graph that flows or has ended.
    pub fn stalls(&mut self, now: Instant, limit: Duration) -> Vec<Stall> {
        if self.is_finished() {
            return Vec::new();
        }
        let scene = Scene::of(&self.shape, &self.counters);
        self.watch.look(now, limit, &scene)
    }
}

impl Scene {
    fn of(shape: &Graph, counters: &RunCounters) -> Self {
        let order = shape.topological_order().unwrap_or_default();
        let blocks = order.into_iter().map(|node| BlockScene {
            hindrance: hindrance(shape, counters, node),
            ..counters.block_scene(node)
        });
        Self { blocks: blocks.collect(), running: counters.blocks_in_call() }
    }
}

/// Returns the reason that keeps a block from being called, if there is one.
fn hindrance(shape: &Graph, counters: &RunCounters, node: usize) -> Option<Why> {
    let name = |node: usize| shape.nodes[node].name.clone();
    let views = counters.views(node);
    for (port, input) in views.inputs.iter().enumerate() {
        let ((available, ended), wanted) = (input.available(), input.wanted());
        let edge = shape.edges.iter().find(|edge| edge.to == PortId { node, port });
        if available < wanted && !ended {
            let writer = edge.map(|edge| name(edge.from.node)).unwrap_or_default();
            return Some(Why::Starved { wanted, available, writer });
        }
    }
    for (port, output) in views.outputs.iter().enumerate() {
        let (room, wanted, capacity) = (output.room(), output.wanted(), output.capacity());
        if room < wanted {
            let from = PortId { node, port };
            let edges = shape.edges.iter().filter(|edge| edge.from == from);
            let readers = edges.map(|edge| name(edge.to.node)).collect();
            let output = shape.output_name(from);
            return Some(Why::Blocked { output, wanted, room, capacity, readers });
        }
    }
    None
}
