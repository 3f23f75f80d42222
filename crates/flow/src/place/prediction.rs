//! What the model expects of a plan.

use super::case::Case;
use super::costs::Distance;
use super::problem::Time;
use super::solve::Solution;
use super::state::State;
use crate::plan::Plan;
use serde::Serialize;

/// What the model expects of a plan.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Prediction {
    /// Whether costs were measured; else every block is taken to cost the same, and times say
    /// nothing but their ratios.
    pub measured: bool,
    /// Whether no plan is better by the model; else a heuristic found this one.
    pub exact: bool,
    /// The source whose items times are counted by.
    pub per_item_of: String,
    /// Items of it that the profile covers.
    pub items: u64,
    /// Time an item, by the fullest CPU: what limits the graph.
    pub ns_per_item: f64,
    /// The same with every block on the fastest CPU.
    pub single_ns_per_item: f64,
    /// CPU time an item, all CPUs together.
    pub cpu_ns_per_item: f64,
    /// The partition on the fullest CPU.
    pub bottleneck: String,
    /// Partitions, as in the plan.
    pub partitions: Vec<PartitionLoad>,
    /// Connections between partitions.
    pub cuts: Vec<Cut>,
    /// The best that each number of CPUs can do.
    pub ladder: Vec<Step>,
}

/// The load of one partition's CPU, nanoseconds an item of [`Prediction::per_item_of`].
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PartitionLoad {
    /// Name of the partition.
    pub name: String,
    /// The CPU that the model has it on, whether the plan pins it or not.
    pub cpu: usize,
    /// Work of its blocks on that CPU.
    pub work_ns: f64,
    /// What its connections to others cost it.
    pub talk_ns: f64,
    /// What the thread on the sibling takes away, and other partitions on the CPU.
    pub shared_ns: f64,
}

impl PartitionLoad {
    /// All together.
    #[must_use]
    pub fn total_ns(&self) -> f64 {
        self.work_ns + self.talk_ns + self.shared_ns
    }
}

/// A connection between two partitions.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Cut {
    /// Writing end, `block.port`.
    pub from: String,
    /// Reading end, `block.port`.
    pub to: String,
    /// Bytes an item of [`Prediction::per_item_of`].
    pub bytes: f64,
    /// What the CPUs share.
    pub distance: Distance,
    /// What both sides pay, nanoseconds an item of [`Prediction::per_item_of`].
    pub ns: f64,
}

/// The best with at most this many CPUs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Step {
    /// CPUs that may be used.
    pub cpus: usize,
    /// Time an item.
    pub ns_per_item: f64,
}

pub(super) fn of(case: &Case, plan: &Plan, solution: &Solution) -> Prediction {
    let (per_item_of, items) = reference(case);
    let ns = |time: Time| time as f64 / 1e3 / items.max(1) as f64;
    let state = State::with(&case.problem, &solution.places);
    let partitions = partitions(case, plan, &state, &ns);
    let fullest = partitions.iter().max_by(|a, b| a.total_ns().total_cmp(&b.total_ns()));
    let fastest =
        |cpu: usize| case.problem.units.iter().map(|unit| unit.work_on[cpu]).sum::<Time>();
    let single = (0..case.problem.machine.len()).map(fastest).min().unwrap_or(0);
    Prediction {
        measured: case.measured,
        exact: solution.exact,
        per_item_of,
        items,
        ns_per_item: ns(solution.score.bottleneck),
        single_ns_per_item: ns(single),
        cpu_ns_per_item: ns(solution.score.total),
        bottleneck: fullest.map(|load| load.name.clone()).unwrap_or_default(),
        partitions,
        cuts: cuts(case, &state, &ns),
        ladder: solution
            .ladder
            .iter()
            .map(|(cpus, score)| Step { cpus: *cpus, ns_per_item: ns(score.bottleneck) })
            .collect(),
    }
}

/// The source with the most items; without sources, the busiest block.
fn reference(case: &Case) -> (String, u64) {
    let reads = |name: &str| {
        let node = case.shape.position(name);
        case.shape.edges.iter().any(|edge| Some(edge.to) == node)
    };
    let blocks = case.profile.blocks.iter();
    let best = blocks.max_by_key(|block| (!reads(&block.name), block.items()));
    best.map_or_else(Default::default, |block| (block.name.clone(), block.items()))
}

fn partitions(
    case: &Case,
    plan: &Plan,
    state: &State<'_>,
    ns: &impl Fn(Time) -> f64,
) -> Vec<PartitionLoad> {
    let load = |partition: &crate::plan::Partition| {
        let first = partition.blocks.first().and_then(|name| case.shape.position(name))?;
        let cpu = state.places[case.unit_of[first]];
        let blocks = partition.blocks.iter().filter_map(|name| case.shape.position(name));
        let mut units: Vec<usize> = blocks.map(|block| case.unit_of[block]).collect();
        units.sort_unstable();
        units.dedup();
        let work: Time = units.iter().map(|unit| case.problem.units[*unit].work_on[cpu]).sum();
        let talk: Time = units.iter().map(|unit| talk_of(case, state, *unit)).sum();
        Some(PartitionLoad {
            name: partition.name.clone(),
            cpu: case.problem.machine.cpus[cpu].number,
            work_ns: ns(work),
            talk_ns: ns(talk),
            shared_ns: ns(state.load(cpu).saturating_sub(work + talk)),
        })
    };
    plan.partitions.iter().filter_map(load).collect()
}

/// What a unit pays for its links.
fn talk_of(case: &Case, state: &State<'_>, unit: usize) -> Time {
    let links = case.problem.links_of[unit].iter().map(|link| &case.problem.links[*link]);
    links
        .map(|link| {
            let (from, to) = (state.places[link.from], state.places[link.to]);
            let (writes, reads) = link.price(&case.problem, from, to);
            if link.from == unit { writes } else { reads }
        })
        .sum()
}

fn cuts(case: &Case, state: &State<'_>, ns: &impl Fn(Time) -> f64) -> Vec<Cut> {
    let items = reference(case).1.max(1) as f64;
    let cut = |edge: &super::EdgeShape| {
        let ends = (case.unit_of[edge.from], case.unit_of[edge.to]);
        let link = case.problem.links.iter().find(|link| (link.from, link.to) == ends)?;
        let (from, to) = (state.places[ends.0], state.places[ends.1]);
        let (writes, reads) = link.price(&case.problem, from, to);
        let cut = Cut {
            from: edge.output.clone(),
            to: edge.input.clone(),
            bytes: case.traffic(edge).bytes / items,
            distance: case.problem.machine.distance(from, to),
            ns: ns(writes + reads),
        };
        (writes + reads > 0).then_some(cut)
    };
    case.shape.edges.iter().filter_map(cut).collect()
}
