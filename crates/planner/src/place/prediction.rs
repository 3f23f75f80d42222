//! The model's prediction for a plan.

use super::case::PlacementCase;
use super::costs::Distance;
use super::problem::{Scale, Time};
use super::solve::Solution;
use super::state::Placement;
use super::what_if::{self, Alternative};
use millstream_flow::plan::{Partition, Plan};
use serde::Serialize;
use std::collections::BTreeSet;

/// The model's prediction for a plan. "An item" is one of [`Self::per_item_of`].
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Prediction {
    /// Whether costs were measured; otherwise they are the blocks' estimates, and only ratios of
    /// times have a meaning.
    pub measured: bool,
    /// Whether the plan is optimal in the model; otherwise a heuristic found it.
    pub exact: bool,
    /// The source whose items are the unit of times.
    pub per_item_of: String,
    /// Items of it that the profile covers.
    pub items: u64,
    /// Time per item of the fullest CPU: the limit of the graph.
    pub ns_per_item: f64,
    /// The same with every block on the fastest CPU.
    pub single_ns_per_item: f64,
    /// CPU time per item, all CPUs together.
    pub cpu_ns_per_item: f64,
    /// The partition that limits the graph: the one with the most work on the fullest CPU.
    pub bottleneck: String,
    /// Partitions, as in the plan.
    pub partitions: Vec<PartitionLoad>,
    /// Blocks, in the order they were added.
    pub blocks: Vec<BlockLoad>,
    /// Connections, in the order they were made.
    pub edges: Vec<EdgeLoad>,
    /// The best result for each number of CPUs.
    pub ladder: Vec<CpuStep>,
    /// The change of one block's CPU that costs least; `None` when no block may move.
    pub next_best: Option<Alternative>,
}

/// The load of one partition, nanoseconds an item.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PartitionLoad {
    /// Name of the partition.
    pub name: String,
    /// The CPU of the partition in the model, whether the plan pins it or not.
    pub cpu: usize,
    /// Work of its blocks on that CPU.
    pub work_ns: f64,
    /// The cost of its connections to others.
    pub talk_ns: f64,
    /// The loss to the thread on the sibling, and to other partitions on the CPU.
    pub shared_ns: f64,
}

impl PartitionLoad {
    /// Returns the sum: the time per item of its CPU.
    #[must_use]
    pub fn total_ns(&self) -> f64 {
        self.work_ns + self.talk_ns + self.shared_ns
    }
}

/// A block in its partition.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BlockLoad {
    /// Name of the block.
    pub name: String,
    /// Its partition, by position in [`Prediction::partitions`].
    pub partition: usize,
    /// Work on the CPU of the partition, nanoseconds an item.
    pub work_ns: f64,
}

/// A connection.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct EdgeLoad {
    /// Writing block, by position in [`Prediction::blocks`].
    pub writer: usize,
    /// Reading block, likewise.
    pub reader: usize,
    /// Writing end, `block.port`.
    pub from: String,
    /// Reading end, `block.port`.
    pub to: String,
    /// Bytes an item.
    pub bytes: f64,
    /// The cost of crossing; `None` inside a partition.
    pub cut: Option<Cut>,
}

/// A connection between two partitions.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Cut {
    /// The distance of the CPUs.
    pub distance: Distance,
    /// The cost for both sides, nanoseconds an item, with other connections between the same
    /// blocks.
    pub ns: f64,
    /// The prediction with both blocks on one CPU, that of the writer or of the reader, whichever
    /// is better; `None` when neither may move.
    pub without: Option<Alternative>,
}

/// The best result with at most this many CPUs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct CpuStep {
    /// CPUs that may be used.
    pub cpus: usize,
    /// Time an item.
    pub ns_per_item: f64,
}

pub(super) fn of(case: &PlacementCase, plan: &Plan, solution: &Solution) -> Prediction {
    let problem = &case.problem;
    let (per_item_of, items) = reference(case);
    let scale = Scale { items: items.max(1) as f64 };
    let mut state = Placement::with(problem, &solution.places);
    let place = |partition: &Partition| partition_load(case, partition, &state, &scale);
    let partitions: Vec<PartitionLoad> = plan.partitions.iter().map(place).collect();
    let limit = partitions.iter().max_by(|a, b| {
        (a.total_ns(), a.work_ns).partial_cmp(&(b.total_ns(), b.work_ns)).expect("finite loads")
    });
    let on = |cpu: usize| problem.units.iter().map(|unit| unit.work_on[cpu]).sum::<Time>();
    let single = (0..problem.machine.len()).map(on).min().unwrap_or(0);
    let blocks = blocks(case, plan, &state, &scale);
    let bottleneck = limit.map(|load| load.name.clone()).unwrap_or_default();
    let ladder = solution.ladder.iter();
    let step =
        |(cpus, score): &(usize, super::state::PlacementCost)| (*cpus, scale.ns(score.bottleneck));
    Prediction {
        measured: case.measured,
        exact: solution.exact,
        per_item_of,
        items,
        ns_per_item: scale.ns(solution.score.bottleneck),
        single_ns_per_item: scale.ns(single),
        cpu_ns_per_item: scale.ns(solution.score.total),
        bottleneck,
        partitions,
        blocks,
        ladder: ladder.map(step).map(|(cpus, ns_per_item)| CpuStep { cpus, ns_per_item }).collect(),
        next_best: what_if::next_best(case, &mut state, &scale),
        edges: edges(case, &mut state, &scale),
    }
}

/// Returns the source with the most items; without sources, the busiest block.
fn reference(case: &PlacementCase) -> (String, u64) {
    let reads = |name: &str| {
        let node = case.shape.position(name);
        case.shape.edges.iter().any(|edge| Some(edge.to) == node)
    };
    let blocks = case.profile.blocks.iter();
    let best = blocks.max_by_key(|block| (!reads(&block.name), block.items()));
    best.map_or_else(Default::default, |block| (block.name.clone(), block.items()))
}

fn partition_load(
    case: &PlacementCase,
    partition: &Partition,
    state: &Placement<'_>,
    scale: &Scale,
) -> PartitionLoad {
    let blocks = partition.blocks.iter().filter_map(|name| case.shape.position(name));
    let units: BTreeSet<usize> = blocks.map(|block| case.unit_of[block]).collect();
    // A partition by hand may be empty; then it has no CPU and no cost.
    let Some(cpu) = units.first().map(|unit| state.places[*unit]) else {
        let cpu = partition.cpu.unwrap_or(case.problem.machine.cpus[0].number);
        let name = partition.name.clone();
        return PartitionLoad { name, cpu, work_ns: 0.0, talk_ns: 0.0, shared_ns: 0.0 };
    };
    let work: Time = units.iter().map(|unit| case.problem.units[*unit].work_on[cpu]).sum();
    let talk: Time = units.iter().map(|unit| talk_of(case, state, *unit)).sum();
    PartitionLoad {
        name: partition.name.clone(),
        cpu: case.problem.machine.cpus[cpu].number,
        work_ns: scale.ns(work),
        talk_ns: scale.ns(talk),
        shared_ns: scale.ns(state.load(cpu).saturating_sub(work + talk)),
    }
}

/// Returns the cost of a unit's links.
fn talk_of(case: &PlacementCase, state: &Placement<'_>, unit: usize) -> Time {
    let links = case.problem.links_of[unit].iter().map(|link| &case.problem.links[*link]);
    links
        .map(|link| {
            let (from, to) = (state.places[link.from], state.places[link.to]);
            let (writes, reads) = link.price(&case.problem, from, to);
            if link.from == unit { writes } else { reads }
        })
        .sum()
}

fn blocks(
    case: &PlacementCase,
    plan: &Plan,
    state: &Placement<'_>,
    scale: &Scale,
) -> Vec<BlockLoad> {
    let load = |(block, is): (usize, &millstream_flow::BlockShape)| {
        let holds = |partition: &Partition| partition.blocks.contains(&is.name);
        let cpu = &case.problem.machine.cpus[state.places[case.unit_of[block]]];
        BlockLoad {
            name: is.name.clone(),
            partition: plan.partitions.iter().position(holds).expect("every block is placed"),
            work_ns: scale.ns(case.work(block)) / cpu.capacity,
        }
    };
    case.shape.blocks.iter().enumerate().map(load).collect()
}

fn edges(case: &PlacementCase, state: &mut Placement<'_>, scale: &Scale) -> Vec<EdgeLoad> {
    let mut load = |edge: &millstream_flow::EdgeShape| {
        let ends = (case.unit_of[edge.from], case.unit_of[edge.to]);
        let link = case.problem.links.iter().find(|link| (link.from, link.to) == ends);
        let (from, to) = (state.places[ends.0], state.places[ends.1]);
        let open = !case.problem.units[ends.0].by_hand && !case.problem.units[ends.1].by_hand;
        let cut = link.filter(|_| from != to || !open).map(|link| {
            let (writes, reads) = link.price(&case.problem, from, to);
            Cut {
                distance: case.problem.machine.distance(from, to),
                ns: scale.ns(writes + reads),
                without: what_if::without(case, state, edge, scale),
            }
        });
        EdgeLoad {
            writer: edge.from,
            reader: edge.to,
            from: edge.output.clone(),
            to: edge.input.clone(),
            bytes: case.traffic(edge).bytes / scale.items,
            cut,
        }
    };
    case.shape.edges.iter().map(&mut load).collect()
}
