//! Cost models.

use crate::place::{self, Hints};
use millstream_cpu::{CpuSet, Topology};
use millstream_flow::Shape;
use millstream_flow::observe::Profile;
use millstream_flow::plan::{Partition, Plan, WaitMode};

/// A model of the cost of plans.
pub trait CostModel {
    /// Returns the cost of a window's load with `plan`, in any fixed unit; less is better. `None`
    /// if it is unknown.
    fn cost(&mut self, load: &Profile, plan: &Plan) -> Option<f64>;

    /// Returns the best plan for the load. `None` if there is no proposal.
    fn propose(&mut self, load: &Profile) -> Option<Plan>;
}

/// The [partitioner](crate::place) for one graph on one machine.
#[derive(Clone, Debug)]
pub struct Partitioner {
    shape: Shape,
    topology: Topology,
    hints: Hints,
}

impl Partitioner {
    /// Makes a cost model for a graph of this shape; the hints are constraints.
    #[must_use]
    pub fn new(shape: Shape, topology: Topology, hints: Hints) -> Self {
        Self { shape, topology, hints }
    }

    /// Makes a cost model for a graph that runs with `plan`, on the CPUs `allowed`. Partitions that
    /// the plan gives a CPU, or lets spin, stay as they are; all other blocks may go anywhere. The
    /// kernel chooses the CPUs of those, as with any plan that was not made by hand.
    #[must_use]
    pub fn beside(plan: &Plan, shape: Shape, topology: Topology, allowed: Option<CpuSet>) -> Self {
        let stays = |it: &&Partition| it.cpu.is_some() || it.wait == WaitMode::Spin;
        let partitions = plan.partitions.iter().filter(stays).cloned().collect();
        let plan = Plan { partitions, ..plan.clone() };
        Self::new(shape, topology, Hints { plan, allowed, unpinned: true, ..Hints::default() })
    }
}

impl CostModel for Partitioner {
    fn cost(&mut self, load: &Profile, plan: &Plan) -> Option<f64> {
        let found = place::predict(&self.shape, load, &self.topology, &self.hints, plan);
        found.ok().map(|prediction| prediction.ns_per_item).filter(|ns| *ns > 0.0)
    }

    fn propose(&mut self, load: &Profile) -> Option<Plan> {
        let placed = place::plan(&self.shape, load, &self.topology, &self.hints);
        placed.ok().map(|placed| placed.plan)
    }
}
