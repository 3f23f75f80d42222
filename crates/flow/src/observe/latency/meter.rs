//! Counts the items under way, and grants the source its room.

use super::paths::{PathStep, longest, steps};
use crate::graph::Graph;
use crate::plan::{Latency, LatencyBound, LatencyError};
use crate::port_state::Views;
use millstream_ring::Padded;
use millstream_ring::cursor::ProducerView;
use millstream_stats::LatencyHistogram;
use serde::Serialize;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The positions of a block at each of its ports after its last call.
///
/// The rings' own positions move inside a call, in the midst of which an item is in no ring. These
/// marks move after the call, the outputs first, so that a thread that reads them upstream first
/// counts an item twice rather than not at all.
#[derive(Debug)]
pub(crate) struct Marks {
    reads: Box<[AtomicU64]>,
    writes: Box<[AtomicU64]>,
}

impl Marks {
    fn new(inputs: usize, outputs: usize) -> Self {
        let zeros = |ports| (0..ports).map(|_| AtomicU64::new(0)).collect();
        Self { reads: zeros(inputs), writes: zeros(outputs) }
    }

    /// Publishes the positions after a call.
    pub(crate) fn publish(&self, views: &Views) {
        self.write(&views.outputs);
        let reads = self.reads.iter().zip(&views.inputs);
        reads.for_each(|(mark, input)| mark.store(input.position(), Ordering::Release));
    }

    fn write(&self, outputs: &[ProducerView]) {
        let writes = self.writes.iter().zip(outputs);
        writes.for_each(|(mark, output)| mark.store(output.position(), Ordering::Release));
    }

    /// Marks the block as ended: items left in its inputs are not under way.
    pub(crate) fn close(&self) {
        self.reads.iter().for_each(|mark| mark.store(u64::MAX, Ordering::Release));
    }
}

/// The items that a source had under way.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LatencyStats {
    /// The source.
    pub source: String,
    /// The bound on items under way, if there is one.
    pub bound_items: Option<u64>,
    /// Items per second, as in the plan.
    pub rate_hz: Option<f64>,
    /// The largest number of items under way after any call of the source.
    pub max_items: u64,
    /// The median over its calls, items.
    pub p50_items: u64,
    /// The 99th percentile over its calls, items.
    pub p99_items: u64,
    /// Calls for which there was no room within the bound.
    pub held_back: u64,
}

impl LatencyStats {
    /// Converts a number of items to milliseconds, if the plan has the rate.
    #[must_use]
    pub fn ms(&self, items: u64) -> Option<f64> {
        self.rate_hz.map(|rate_hz| items as f64 / rate_hz * 1000.0)
    }
}

/// The measurements at one source, written by its thread.
#[derive(Debug, Default)]
struct SourceMeter {
    under_way: LatencyHistogram,
    held_back: AtomicU64,
}

/// A source's grant of room, on its thread.
#[derive(Debug)]
pub(crate) struct Budget {
    bound_items: u64,
    source: usize,
    marks: Vec<Arc<Padded<Marks>>>,
    ways: Vec<MeteredStep>,
    /// The items under way behind each node, in items of the source.
    behind: Vec<u64>,
    /// The same behind each of the source's outputs, at the last poll.
    under_way: Vec<u64>,
    record: Arc<Padded<SourceMeter>>,
}

/// A [`PathStep`], its ends, and the worth of its items under way at the last poll.
#[derive(Debug)]
struct MeteredStep {
    step: PathStep,
    from: (usize, usize),
    to: (usize, usize),
    worth: u64,
}

impl Budget {
    /// Limits the room of the source's `outputs` to the rest of the bound. Returns whether each has
    /// the room that it wants.
    pub(crate) fn grant(&mut self, outputs: &[ProducerView]) -> bool {
        self.look(outputs);
        let mut enough = true;
        for (output, under_way) in outputs.iter().zip(&self.under_way) {
            let left = self.bound_items.saturating_sub(*under_way);
            output.cut(left);
            enough &= left >= output.wanted();
        }
        if !enough {
            let held = &self.record.held_back;
            held.store(held.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        }
        enough
    }

    /// Reads every mark downstream of the source.
    fn look(&mut self, outputs: &[ProducerView]) {
        self.marks[self.source].write(outputs);
        // Upstream first, see `Marks`.
        for way in &mut self.ways {
            let written = self.marks[way.from.0].writes[way.from.1].load(Ordering::Acquire);
            let read = self.marks[way.to.0].reads[way.to.1].load(Ordering::Acquire);
            let holds = if read == u64::MAX { 0 } else { way.step.holds };
            way.worth = way.step.weight.of(written.saturating_sub(read)).saturating_add(holds);
        }
        self.behind.fill(0);
        self.under_way.fill(0);
        for way in self.ways.iter().rev() {
            let worth = way.worth.saturating_add(self.behind[way.to.0]);
            let behind = &mut self.behind[way.from.0];
            *behind = worth.max(*behind);
            if way.from.0 == self.source {
                let output = &mut self.under_way[way.from.1];
                *output = worth.max(*output);
            }
        }
    }

    /// Records the items under way after a call of the source.
    pub(crate) fn record(&self, outputs: &[ProducerView]) {
        let before = &self.marks[self.source].writes;
        let under_way = self.under_way.iter().zip(outputs.iter().zip(before)).map(
            |(under_way, (output, before))| {
                under_way + (output.position() - before.load(Ordering::Relaxed))
            },
        );
        self.record.under_way.record(under_way.max().unwrap_or(0));
    }
}

/// The meters of a run.
pub(crate) struct Meters {
    /// The marks of each node downstream of a measured source.
    pub(crate) marks: Vec<Option<Arc<Padded<Marks>>>>,
    /// The budget of each node that is a measured source.
    pub(crate) budgets: Vec<Option<Budget>>,
    /// The sources to wake when a node has moved on: (node, source).
    pub(crate) wakes: Vec<(usize, usize)>,
    pub(crate) board: LatencyBoard,
}

/// The public results of the meters.
#[derive(Default)]
pub(crate) struct LatencyBoard {
    sources: Vec<(String, LatencyBound, Arc<Padded<SourceMeter>>)>,
}

impl LatencyBoard {
    pub(crate) fn snapshot(&self) -> Vec<LatencyStats> {
        let stats = self.sources.iter().map(|(source, wanted, record)| LatencyStats {
            source: source.clone(),
            bound_items: wanted.bound_items,
            rate_hz: wanted.rate_hz,
            max_items: record.under_way.max(),
            p50_items: record.under_way.quantile(0.5),
            p99_items: record.under_way.quantile(0.99),
            held_back: record.held_back.load(Ordering::Relaxed),
        });
        stats.collect()
    }
}

impl Meters {
    /// Makes a board without meters.
    pub(crate) fn none(graph: &Graph) -> Self {
        let nodes = graph.nodes.len();
        Self {
            marks: vec![None; nodes],
            budgets: (0..nodes).map(|_| None).collect(),
            wakes: Vec::new(),
            board: LatencyBoard::default(),
        }
    }

    /// Makes meters for every source of `graph`, whose nodes in topological order are `order`.
    ///
    /// # Errors
    /// [`LatencyError`]: a bound that cannot be kept, or for a block that is not a source.
    pub(crate) fn new(
        latency: &Latency,
        graph: &Graph,
        order: &[usize],
    ) -> Result<Self, LatencyError> {
        let mut meters = Self::none(graph);
        let is_source = |node: &usize| {
            graph.nodes[*node].inputs.is_empty() && !graph.nodes[*node].outputs.is_empty()
        };
        let sources: Vec<usize> = (0..graph.nodes.len()).filter(is_source).collect();
        let name = |node: usize| graph.nodes[node].name.clone();
        for known in latency.source.keys() {
            if !sources.iter().any(|source| graph.nodes[*source].name == *known) {
                let (name, known) = (known.clone(), sources.iter().copied().map(name).collect());
                return Err(LatencyError::NoSource { name, known });
            }
        }
        let marks: Vec<Arc<Padded<Marks>>> = graph
            .nodes
            .iter()
            .map(|node| Arc::new(Padded(Marks::new(node.inputs.len(), node.outputs.len()))))
            .collect();
        for source in sources {
            let wanted = latency.wanted(&graph.nodes[source].name)?;
            let steps = steps(graph, order, source);
            check(graph, &steps, source, wanted)?;
            let mut nodes: Vec<usize> =
                steps.iter().map(|step| graph.edges[step.edge].to.node).collect();
            nodes.sort_unstable();
            nodes.dedup();
            for node in nodes {
                meters.marks[node] = Some(Arc::clone(&marks[node]));
                meters.wakes.push((node, source));
            }
            let record = Arc::<Padded<SourceMeter>>::default();
            meters.board.sources.push((name(source), wanted, Arc::clone(&record)));
            meters.budgets[source] = Some(budget(graph, steps, source, wanted, &marks, record));
        }
        Ok(meters)
    }
}

fn budget(
    graph: &Graph,
    steps: Vec<PathStep>,
    source: usize,
    wanted: LatencyBound,
    marks: &[Arc<Padded<Marks>>],
    record: Arc<Padded<SourceMeter>>,
) -> Budget {
    let ways = steps.into_iter().map(|step| {
        let edge = &graph.edges[step.edge];
        let (from, to) = ((edge.from.node, edge.from.port), (edge.to.node, edge.to.port));
        MeteredStep { step, from, to, worth: 0 }
    });
    Budget {
        bound_items: wanted.bound_items.unwrap_or(u64::MAX),
        source,
        marks: marks.to_vec(),
        ways: ways.collect(),
        behind: vec![0; graph.nodes.len()],
        under_way: vec![0; graph.nodes[source].outputs.len()],
        record,
    }
}

/// Refuses a bound at which every block could wait for items that the source may not produce. Each
/// block may have one item less than it wants before it, and keep the items that it holds.
fn check(
    graph: &Graph,
    steps: &[PathStep],
    source: usize,
    wanted: LatencyBound,
) -> Result<(), LatencyError> {
    let Some(bound) = wanted.bound_items else { return Ok(()) };
    let node = &graph.nodes[source];
    let own = node.outputs.iter().map(|port| port.min_items as u64).max().unwrap_or(0).max(1);
    let amount = |step: &PathStep| step.needs.saturating_add(step.holds);
    let least = longest(graph, steps, source, amount).saturating_add(own);
    if bound >= least {
        return Ok(());
    }
    let most = steps.iter().max_by_key(|step| amount(step)).filter(|step| amount(step) >= own);
    let most = match most {
        Some(step) => format!("`{}`", graph.input_name(graph.edges[step.edge].to)),
        None => format!("`{}` itself", node.name),
    };
    Err(LatencyError::TooSmall {
        source_name: node.name.clone(),
        bound,
        least,
        least_ms: wanted.rate_hz.map(|rate_hz| least as f64 / rate_hz * 1000.0),
        most,
    })
}
