//! The partitioner: it chooses the blocks that share a thread, and the thread's CPU.
//!
//! [`plan`] takes the [`Shape`] of a graph, the costs of its blocks (a [`Profile`]), the machine (a
//! [`Topology`]) and the user's decisions ([`Hints`]), and returns a [`Placed`]: a [`Plan`], its
//! [`Prediction`], and both as text and as pictures. It reads no clock and no file.
//!
//! # The model
//! The load of a CPU is the time it needs for the period that the profile covers:
//!
//! - the work of its blocks, divided by its capacity;
//! - for each connection to another CPU, bytes and batches at the [prices](Costs) of the distance;
//! - the loss to the thread on a sibling (SMT) while both are busy.
//!
//! The fullest CPU limits the graph (the bottleneck). Plans whose bottlenecks are equal within
//! [`Costs::resolution`] are compared by the sum of all loads, and another CPU is used only when it
//! brings [`Costs::worthwhile`] or more.
//!
//! # The search
//! Small graphs are solved by branch and bound, which finds the optimum of the model
//! ([`Prediction::exact`] says so). Larger ones are coarsened along their heaviest connections,
//! cut, and refined level by level; the time is bounded by a count of steps.

mod case;
mod costs;
pub mod crossing;
mod exact;
mod explain;
mod heuristic;
mod machine;
mod picture;
mod prediction;
mod problem;
mod solve;
mod state;
#[cfg(test)]
mod tests;
mod what_if;
mod write;

pub use costs::{Costs, Distance, Price};
pub use picture::CpuGroup;
pub use prediction::{BlockLoad, CpuStep, Cut, EdgeLoad, PartitionLoad, Prediction};
pub use what_if::Alternative;

use case::PlacementCase;
use millstream_cpu::{CpuSet, Topology};
use millstream_flow::Shape;
use millstream_flow::observe::Profile;
use millstream_flow::plan::{Plan, PlanError};
use std::collections::BTreeMap;
use std::path::Path;

/// The user's decisions, and the prices of the model.
#[derive(Clone, Debug, Default)]
pub struct Hints {
    /// A plan by hand. Its partitions and every buffer size other than the default stay unchanged.
    pub plan: Plan,
    /// Blocks that must run on a CPU; others may join them.
    pub pins: BTreeMap<String, usize>,
    /// CPUs that may be used; `None` for all of the topology.
    pub allowed: Option<CpuSet>,
    /// The most CPUs to use; `None` for as many as are worthwhile.
    pub max_cpus: Option<usize>,
    /// Whether the added partitions get no `cpu`. A runtime that does not know the other load of
    /// the machine leaves the choice to the kernel.
    pub unpinned: bool,
    /// Prices of the model.
    pub costs: Costs,
}

/// A plan, its prediction, and its picture.
#[derive(Clone, Debug, PartialEq)]
pub struct Placed {
    /// The plan: the partitions by hand first, every block in exactly one.
    pub plan: Plan,
    /// The model's prediction of its load.
    pub prediction: Prediction,
    /// The CPU groups of its partitions, for the pictures.
    pub frames: Vec<CpuGroup>,
}

/// Finds the best plan.
///
/// Without measurements (`profile` has no blocks) every block is assumed to cost what it estimates
/// (`BlockFacts`), and items to flow by the rates of the shape.
///
/// # Errors
/// [`PlanError`]: the hints name a block or a CPU that does not exist, or a block twice.
pub fn plan(
    shape: &Shape,
    profile: &Profile,
    topology: &Topology,
    hints: &Hints,
) -> Result<Placed, PlanError> {
    let case = PlacementCase::new(shape, profile, topology, hints)?;
    let solution = solve::solve(&case.problem);
    let plan = write::plan(&case, &solution.places, hints);
    let prediction = prediction::of(&case, &plan, &solution);
    let frames = picture::frames(&case, &prediction);
    Ok(Placed { plan, prediction, frames })
}

/// Completes a plan so that every block is in a partition: those that `plan` does not mention go
/// where they fit best on the CPUs `allowed` of this machine (`None`: all), as far as that is known
/// before a run. The added partitions are not pinned.
///
/// # Errors
/// As [`plan()`].
pub fn complete(plan: &Plan, shape: &Shape, allowed: Option<&CpuSet>) -> Result<Plan, PlanError> {
    let mentioned = plan.partition_of_each(shape.blocks.len(), |name| shape.position(name))?;
    if !mentioned.contains(&None) {
        return Ok(plan.clone());
    }
    // A machine with an unknown topology is assumed to have equal cores.
    let topology =
        Topology::read(Path::new("/")).unwrap_or_else(|_| Topology::flat(&CpuSet::default()));
    let hints =
        Hints { plan: plan.clone(), allowed: allowed.cloned(), unpinned: true, ..Hints::default() };
    let placed = self::plan(shape, &Profile::default(), &topology, &hints)?.plan;
    Ok(Plan { partitions: placed.partitions, ..plan.clone() })
}

/// Predicts the load of a graph under `plan`, such as the plan under which it runs. With the same
/// profile and machine, its [`Prediction::ns_per_item`] compares with that of the plan that
/// [`plan()`] makes: is a move of the graph worth it?
///
/// Blocks that `plan` leaves out and partitions without `cpu` are put where they fit best.
///
/// # Errors
/// As [`plan()`].
pub fn predict(
    shape: &Shape,
    profile: &Profile,
    topology: &Topology,
    hints: &Hints,
    plan: &Plan,
) -> Result<Prediction, PlanError> {
    let hints = Hints { plan: plan.clone(), ..hints.clone() };
    self::plan(shape, profile, topology, &hints).map(|placed| placed.prediction)
}
