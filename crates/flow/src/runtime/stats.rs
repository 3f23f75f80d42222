//! Counters that are always on, and their snapshots.

use super::placement::Placement;
use crate::graph::{Edge, Graph, Node, PortId};
use crate::metric::Metric;
use crate::observe::{BlockScene, LatencyBoard, LatencyStats, RunningBlock};
use crate::port_state::Views;
use millstream_ring::Padded;
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// One block's counters. One thread writes, any thread reads.
#[derive(Debug, Default)]
pub(super) struct BlockCounters {
    pub(super) calls: Count,
    /// An estimate where only some calls are timed.
    pub(super) busy_ns: Count,
    pub(super) inputs: Box<[InputCounters]>,
    /// Polls that found too little room, by output.
    pub(super) blocked: Box<[Count]>,
    /// Whether it has finished, 0 or 1.
    pub(super) finished: Count,
}

/// One input's counters.
#[derive(Debug, Default)]
pub(super) struct InputCounters {
    /// Polls that found too few items.
    pub(super) starved: Count,
    /// Polls before timed calls.
    pub(super) looks: Count,
    /// The sum of their fills, in [`FILL_ONE`]ths of the capacity.
    pub(super) fill: Count,
}

/// A full ring.
pub(super) const FILL_ONE: u64 = 1 << 10;

impl BlockCounters {
    fn new(node: &Node) -> Self {
        let inputs = node.inputs.iter().map(|_| InputCounters::default()).collect();
        let blocked = node.outputs.iter().map(|_| Count::default()).collect();
        Self { inputs, blocked, ..Self::default() }
    }
}

/// One partition's counters.
#[derive(Debug, Default)]
pub(super) struct PartitionCounters {
    pub(super) sweeps: Count,
    pub(super) waits: Count,
    /// The thread's number; 0 before it runs.
    pub(super) tid: Count,
    /// 1 if the kernel refused the CPU of the plan.
    pub(super) unpinned: Count,
    /// The block in a call: its position in the graph plus one; 0 for none.
    pub(super) in_call: Count,
}

/// A number with one writing thread, so that no atomic read-modify-write is needed.
#[derive(Debug, Default)]
pub(super) struct Count(AtomicU64);

impl Count {
    pub(super) fn add(&self, n: u64) {
        self.0.store(self.get().wrapping_add(n), Ordering::Relaxed);
    }

    pub(super) fn set(&self, n: u64) {
        self.0.store(n, Ordering::Relaxed);
    }

    pub(super) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Every counter of a run, with names.
pub(super) struct RunCounters {
    pub(super) began: Instant,
    pub(super) blocks: Vec<BlockEntry>,
    pub(super) edges: Vec<EdgeEntry>,
    partitions: Vec<PartitionEntry>,
    pub(super) latency: LatencyBoard,
}

pub(super) struct BlockEntry {
    pub(super) name: String,
    partition: String,
    pub(super) counters: Arc<Padded<BlockCounters>>,
    pub(super) views: Views,
    /// Bytes that the block keeps between calls.
    pub(super) held_bytes: u64,
    metrics: Vec<(&'static str, Metric)>,
}

/// A connection, by positions in the counters.
pub(super) struct EdgeEntry {
    pub(super) from: (PortId, String),
    pub(super) to: (PortId, String),
    pub(super) item_bytes: u64,
}

impl EdgeEntry {
    /// Returns every connection, in the order they were made.
    fn of(graph: &Graph) -> Vec<Self> {
        let entry = |edge: &Edge| Self {
            from: (edge.from, graph.output_name(edge.from)),
            to: (edge.to, graph.input_name(edge.to)),
            item_bytes: graph.output(edge.from).item.size_bytes() as u64,
        };
        graph.edges.iter().map(entry).collect()
    }
}

/// The partitions of an earlier placement.
pub(super) struct Partitions(Vec<PartitionEntry>);

struct PartitionEntry {
    name: String,
    cpu: Option<usize>,
    counters: Arc<Padded<PartitionCounters>>,
}

impl RunCounters {
    /// Makes counters for a graph whose rings are open.
    pub(super) fn new(graph: &mut Graph, placement: &Placement) -> Self {
        let blocks = graph.nodes.iter_mut().map(|node| {
            let metrics = node.facts.metrics.clone();
            let input_bytes = node.inputs.first().map_or(0, |port| port.item.size_bytes() as u64);
            BlockEntry {
                name: node.name.clone(),
                partition: String::new(),
                counters: Arc::new(Padded(BlockCounters::new(node))),
                views: Views::of(&mut *node.block),
                held_bytes: node.facts.holds.saturating_mul(input_bytes),
                metrics,
            }
        });
        let blocks = blocks.collect();
        let (edges, latency) = (EdgeEntry::of(graph), LatencyBoard::default());
        let mut counters =
            Self { began: Instant::now(), blocks, edges, partitions: Vec::new(), latency };
        counters.assign(placement);
        counters
    }

    /// Places the blocks anew. Partitions that keep their names keep their counters. Returns the
    /// earlier partitions, for [`restore`](Self::restore).
    pub(super) fn assign(&mut self, placement: &Placement) -> Partitions {
        self.name_partitions(placement);
        let before = std::mem::take(&mut self.partitions);
        let counters = |name: &str| {
            let kept = before.iter().find(|entry| entry.name == name);
            kept.map(|entry| Arc::clone(&entry.counters)).unwrap_or_default()
        };
        let partitions = placement.partitions.iter().map(|partition| PartitionEntry {
            name: partition.name.clone(),
            cpu: partition.cpu,
            counters: counters(&partition.name),
        });
        self.partitions = partitions.collect();
        Partitions(before)
    }

    /// Reverts an [`assign`](Self::assign): threads continue with their counters.
    pub(super) fn restore(&mut self, placement: &Placement, before: Partitions) {
        self.name_partitions(placement);
        self.partitions = before.0;
    }

    fn name_partitions(&mut self, placement: &Placement) {
        for (entry, partition) in self.blocks.iter_mut().zip(&placement.of_node) {
            placement.partitions[*partition].name.clone_into(&mut entry.partition);
        }
    }

    /// Returns the block that is in a call in a partition.
    pub(super) fn at_work(&self, partition: &str) -> Option<&str> {
        let entry = self.partitions.iter().find(|entry| entry.name == partition)?;
        self.block_in_call(entry).map(|block| block.name.as_str())
    }

    /// Returns the block in a call of every partition.
    pub(super) fn blocks_in_call(&self) -> Vec<RunningBlock> {
        let in_call = |entry: &PartitionEntry| RunningBlock {
            partition: entry.name.clone(),
            block: self
                .block_in_call(entry)
                .map(|block| (block.name.clone(), block.counters.calls.get())),
            sweeps: entry.counters.sweeps.get(),
        };
        self.partitions.iter().map(in_call).collect()
    }

    /// Returns the watchdog's view of a block, without its hindrance.
    pub(super) fn block_scene(&self, node: usize) -> BlockScene {
        let entry = &self.blocks[node];
        BlockScene {
            name: entry.name.clone(),
            finished: entry.counters.finished.get() > 0,
            calls: entry.counters.calls.get(),
            progress: entry.views.progress(),
            hindrance: None,
        }
    }

    pub(super) fn views(&self, node: usize) -> &Views {
        &self.blocks[node].views
    }

    fn block_in_call(&self, partition: &PartitionEntry) -> Option<&BlockEntry> {
        let in_call = usize::try_from(partition.counters.in_call.get()).ok()?;
        self.blocks.get(in_call.checked_sub(1)?)
    }

    pub(super) fn block_counters(&self, node: usize) -> Arc<Padded<BlockCounters>> {
        Arc::clone(&self.blocks[node].counters)
    }

    pub(super) fn partition_counters(&self, index: usize) -> Arc<Padded<PartitionCounters>> {
        Arc::clone(&self.partitions[index].counters)
    }

    pub(super) fn snapshot(&self) -> Snapshot {
        let blocks = self.blocks.iter().map(|entry| BlockStats {
            name: entry.name.clone(),
            partition: entry.partition.clone(),
            calls: entry.counters.calls.get(),
            items_in: entry.views.items_in(),
            items_out: entry.views.items_out(),
            busy_ns: entry.counters.busy_ns.get(),
            metrics: entry
                .metrics
                .iter()
                .map(|(name, metric)| ((*name).to_owned(), MetricValue::of(metric)))
                .collect(),
            messages: None,
        });
        let partitions = self.partitions.iter().map(|entry| PartitionStats {
            name: entry.name.clone(),
            cpu: entry.cpu.filter(|_| entry.counters.unpinned.get() == 0),
            tid: u32::try_from(entry.counters.tid.get()).unwrap_or(0),
            sweeps: entry.counters.sweeps.get(),
            waits: entry.counters.waits.get(),
        });
        Snapshot {
            blocks: blocks.collect(),
            partitions: partitions.collect(),
            latency: self.latency.snapshot(),
        }
    }
}

/// The counters of a run at one moment. Counters of one block may be one call apart.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Snapshot {
    /// Blocks in the order they were added.
    pub blocks: Vec<BlockStats>,
    /// Partitions, those of the plan first.
    pub partitions: Vec<PartitionStats>,
    /// Items that each source had under way, if the plan has a section `latency`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub latency: Vec<LatencyStats>,
}

impl Snapshot {
    /// Returns the block of this name.
    #[must_use]
    pub fn block(&self, name: &str) -> Option<&BlockStats> {
        self.blocks.iter().find(|block| block.name == name)
    }
}

/// Counts of a block so far.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BlockStats {
    /// Name of the block.
    pub name: String,
    /// Name of its partition.
    pub partition: String,
    /// Calls of `work`.
    pub calls: u64,
    /// Items consumed, all inputs together.
    pub items_in: u64,
    /// Items produced, all outputs together.
    pub items_out: u64,
    /// Time in `work` (wall clock), in nanoseconds, including the runtime's work since the call
    /// before. Where calls are short it is an estimate from some of them.
    pub busy_ns: u64,
    /// The metrics that the block publishes.
    pub metrics: BTreeMap<String, MetricValue>,
    /// Counts of its messages, if it takes any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub messages: Option<MessageStats>,
}

impl BlockStats {
    /// Returns a metric as a number.
    #[must_use]
    pub fn metric(&self, name: &str) -> Option<f64> {
        self.metrics.get(name).map(|value| match value {
            MetricValue::Counter(count) => *count as f64,
            MetricValue::Gauge(value) => *value,
        })
    }
}

/// Counts of the messages of a block that takes messages.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct MessageStats {
    /// Messages that the block has taken, including the refused ones.
    pub taken: u64,
    /// Messages with values that the block refused.
    pub refused: u64,
    /// The last refused message and the reason.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refusal: Option<String>,
}

/// A published number.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum MetricValue {
    /// A count that only grows.
    Counter(u64),
    /// A value that goes up and down; NaN (in JSON: null) until first set.
    Gauge(f64),
}

impl MetricValue {
    fn of(metric: &Metric) -> Self {
        match metric {
            Metric::Counter(counter) => Self::Counter(counter.get()),
            Metric::Gauge(gauge) => Self::Gauge(gauge.get()),
        }
    }
}

/// Counts of a partition so far.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PartitionStats {
    /// Name of the partition.
    pub name: String,
    /// The CPU to which it is pinned; `None` if the kernel has refused it.
    pub cpu: Option<usize>,
    /// Number of its thread, as `ps -L` shows it; 0 before it runs.
    pub tid: u32,
    /// Sweeps over its blocks.
    pub sweeps: u64,
    /// Waits when no block could work.
    pub waits: u64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blocks::{NullSink, NullSource};
    use crate::plan::{Partition, Plan, WaitMode};

    fn placement(graph: &Graph, name: &str) -> Placement {
        let blocks = graph.block_names().map(str::to_owned).collect();
        let partition = Partition { name: name.into(), blocks, cpu: None, wait: WaitMode::Park };
        let plan = Plan { partitions: vec![partition], ..Plan::default() };
        plan.place(graph, &[0].into_iter().collect()).unwrap()
    }

    #[test]
    fn a_move_that_is_taken_back_leaves_threads_the_counters_they_have() {
        let mut graph = Graph::new();
        graph.add("source", NullSource::<u8>::new()).unwrap();
        graph.add("sink", NullSink::<u8>::new()).unwrap();
        graph.chain(&["source", "sink"]).unwrap();
        let (here, there) = (placement(&graph, "here"), placement(&graph, "there"));
        let mut counters = RunCounters::new(&mut graph, &here);
        let of_thread = counters.partition_counters(0);
        of_thread.waits.set(7);
        let before = counters.assign(&there);
        assert_eq!(counters.snapshot().partitions[0].waits, 0, "another name, another partition");
        counters.restore(&here, before);
        of_thread.waits.add(1);
        let snapshot = counters.snapshot();
        let partition = &snapshot.partitions[0];
        assert_eq!((partition.name.as_str(), partition.waits), ("here", 8));
        assert_eq!(snapshot.blocks[1].partition, "here");
    }
}
