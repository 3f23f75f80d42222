//! The plans to try.

use super::axis::{between_octaves, in_words, octaves};
use super::cpus::cpu_orders;
use super::layout;
use super::shape::GraphOutline;
use crate::place;
use millstream_cpu::{CpuSet, Topology};
use millstream_flow::Shape;
use millstream_flow::graph::{Graph, GraphError};
use millstream_flow::plan::{Buffers, Partition, Pins, Plan, WaitMode, default_batch_bytes};
use serde::{Deserialize, Serialize};
use std::fmt;

/// The part of a plan that is varied in a stage.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum TuningStage {
    /// The plan that the search starts from, when it is not the default.
    Start,
    /// All parts together, coarsely.
    Together,
    /// The blocks that share a partition.
    Layout,
    /// The size of batches.
    Batch,
    /// Rings inside partitions.
    Inside,
    /// Rings between partitions.
    Between,
    /// The wait modes of partitions.
    Wait,
    /// The CPUs of partitions.
    Cpus,
    /// The plan that was found, against the default.
    Final,
}

impl fmt::Display for TuningStage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Start => "start",
            Self::Together => "together",
            Self::Layout => "partitions",
            Self::Batch => "batches",
            Self::Inside => "rings inside",
            Self::Between => "rings between",
            Self::Wait => "waiting",
            Self::Cpus => "CPUs",
            Self::Final => "verdict",
        })
    }
}

/// A way to place the blocks that were not placed by hand.
#[derive(Clone, Debug, PartialEq)]
pub struct PlanLayout {
    /// A description.
    pub what: String,
    /// Its partitions.
    pub partitions: Vec<Partition>,
}

/// Plans that may be tried, as the choices for each stage. No choice changes an entry of [`Pins`].
#[derive(Clone, Debug, Default)]
pub struct Space {
    /// The entries written by hand.
    pub pins: Pins,
    /// Ways to place blocks.
    pub layouts: Vec<PlanLayout>,
    /// The sizes of batches, bytes, ascending.
    pub batch_bytes: Vec<usize>,
    /// Sizes of rings inside partitions, bytes, ascending.
    pub inside_bytes: Vec<usize>,
    /// Sizes of rings between partitions, bytes, ascending.
    pub between_bytes: Vec<usize>,
    /// Wait modes. `Spin` is tried for partitions that have a CPU of their own.
    pub waits: Vec<WaitMode>,
    /// Orders in which CPUs are assigned to partitions.
    pub cpu_orders: Vec<(String, Vec<usize>)>,
    /// Whether sizes between the given ones are tried around the best of them.
    pub refine: bool,
}

/// A plan to try.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Candidate {
    pub(super) what: String,
    pub(super) plan: Plan,
    /// Its size, in a stage of sizes.
    pub(super) size_bytes: Option<usize>,
}

impl Space {
    /// Makes the usual choices for `graph` on a machine: `costs` are of blocks by name, in any
    /// unit, and `topology` is that of the CPUs.
    ///
    /// # Errors
    /// The plan does not fit the graph or the CPUs.
    pub fn of(
        graph: &Graph,
        pins: Pins,
        costs: impl Fn(&str) -> f64,
        topology: Option<&Topology>,
        allowed: &CpuSet,
    ) -> Result<Self, GraphError> {
        Ok(Self::of_shape(&GraphOutline::of(graph)?, pins, costs, topology, allowed))
    }

    pub(super) fn of_shape(
        shape: &GraphOutline,
        pins: Pins,
        costs: impl Fn(&str) -> f64,
        topology: Option<&Topology>,
        allowed: &CpuSet,
    ) -> Self {
        let is_free = |name: &String| !pins.has_block(name);
        let free: Vec<usize> =
            (0..shape.blocks.len()).filter(|at| is_free(&shape.blocks[*at])).collect();
        let weights: Vec<f64> = shape.blocks.iter().map(|name| costs(name)).collect();
        let cores = allowed.len().saturating_sub(pins.partitions()).max(1);
        let cuts = match free[..] {
            [] => Vec::new(),
            _ => layout::cuts(&free, &weights, &shape.components(), cores),
        };
        let layouts = cuts.into_iter().map(|(what, groups)| PlanLayout {
            what,
            partitions: name_groups(&pins, shape, &groups),
        });
        Self {
            layouts: layouts.collect(),
            batch_bytes: octaves(2 << 10, 256 << 10),
            inside_bytes: octaves(8 << 10, 1 << 20),
            between_bytes: octaves(64 << 10, 4 << 20),
            waits: vec![WaitMode::Park, WaitMode::Adaptive],
            cpu_orders: cpu_orders(topology, allowed),
            refine: true,
            pins,
        }
    }

    /// Adds the partitions of a plan to the layouts, for blocks that were not placed by hand.
    pub fn suggest(&mut self, what: &str, plan: &Plan) {
        let is_free = |one: &&Partition| !self.pins.has_partition(&one.name);
        let free = plan.partitions.iter().filter(is_free).cloned();
        let partitions: Vec<Partition> =
            free.map(|one| Partition { cpu: None, wait: WaitMode::Park, ..one }).collect();
        let groups = |partitions: &[Partition]| {
            let mut groups: Vec<_> = partitions.iter().map(|one| one.blocks.clone()).collect();
            groups.iter_mut().for_each(|blocks| blocks.sort());
            groups.sort();
            groups
        };
        let is_known = |layout: &PlanLayout| groups(&layout.partitions) == groups(&partitions);
        if !partitions.is_empty() && !self.layouts.iter().any(is_known) {
            self.layouts.push(PlanLayout { what: what.to_owned(), partitions });
        }
    }

    /// Completes `plan`: every block in a partition and the size of batches, as the runtime would
    /// choose them.
    ///
    /// # Errors
    /// The plan does not fit the graph or the CPUs.
    pub fn spell_out(plan: &Plan, graph: &Graph, allowed: &CpuSet) -> Result<Plan, GraphError> {
        let mut plan = place::complete(plan, &Shape::of(graph), Some(allowed))?;
        plan.buffers.batch_bytes.get_or_insert_with(default_batch_bytes);
        Ok(plan)
    }

    /// Returns the variations of `plan` in a stage; sizes lie around its own in a `fine` pass.
    pub(super) fn candidates(&self, stage: TuningStage, plan: &Plan, fine: bool) -> Vec<Candidate> {
        let mut found = match stage {
            TuningStage::Layout => self.layouts(plan),
            TuningStage::Batch => {
                self.sizes(plan, fine, "batch_bytes", &self.batch_bytes, |buffers, size| {
                    std::mem::replace(&mut buffers.batch_bytes, size).unwrap_or(0)
                })
            }
            TuningStage::Inside => {
                self.sizes(plan, fine, "inside_bytes", &self.inside_bytes, |buffers, size| {
                    swap(&mut buffers.inside_bytes, size)
                })
            }
            TuningStage::Between if plan.partitions.len() > 1 => {
                self.sizes(plan, fine, "between_bytes", &self.between_bytes, |buffers, size| {
                    swap(&mut buffers.between_bytes, size)
                })
            }
            TuningStage::Wait => self.waits(plan),
            TuningStage::Cpus => self.cpus(plan),
            _ => Vec::new(),
        };
        found.retain(|candidate| {
            debug_assert_eq!(self.pins.broken_by(&candidate.plan), None, "{}", candidate.what);
            candidate.plan != *plan
        });
        found
    }

    fn layouts(&self, plan: &Plan) -> Vec<Candidate> {
        let is_pinned = |partition: &&Partition| self.pins.has_partition(&partition.name);
        let (pinned, free): (Vec<_>, Vec<_>) = plan.partitions.iter().partition(is_pinned);
        let wait = free.first().map_or(WaitMode::Park, |partition| partition.wait);
        // A spinning partition needs a CPU of its own, and a new layout has none yet.
        let wait = if wait == WaitMode::Spin { WaitMode::Adaptive } else { wait };
        let make = |layout: &PlanLayout| {
            let own = layout.partitions.iter().cloned().map(|one| Partition { wait, ..one });
            let mut partitions: Vec<_> = pinned.iter().map(|one| (*one).clone()).collect();
            partitions.extend(own);
            let plan = Plan { partitions, ..plan.clone() };
            Candidate { what: layout.what.clone(), plan, size_bytes: None }
        };
        self.layouts.iter().map(make).collect()
    }

    fn sizes(
        &self,
        plan: &Plan,
        fine: bool,
        key: &str,
        coarse: &[usize],
        set: impl Fn(&mut Buffers, Option<usize>) -> usize,
    ) -> Vec<Candidate> {
        if self.pins.has_buffer(key) {
            return Vec::new();
        }
        let now = set(&mut plan.buffers.clone(), None);
        let sizes = match fine {
            true if self.refine => between_octaves(now),
            true => Vec::new(),
            false => coarse.to_vec(),
        };
        let make = |size: usize| {
            let mut plan = plan.clone();
            set(&mut plan.buffers, Some(size));
            Candidate { what: in_words(size), plan, size_bytes: Some(size) }
        };
        sizes.into_iter().map(make).collect()
    }

    fn waits(&self, plan: &Plan) -> Vec<Candidate> {
        let make = |mode: WaitMode| {
            let mut plan = plan.clone();
            for partition in &mut plan.partitions {
                let may = mode != WaitMode::Spin || partition.cpu.is_some();
                if may && !self.pins.has_key(&partition.name, "wait") {
                    partition.wait = mode;
                }
            }
            Candidate { what: format!("{mode:?}").to_lowercase(), plan, size_bytes: None }
        };
        self.waits.iter().copied().map(make).collect()
    }

    fn cpus(&self, plan: &Plan) -> Vec<Candidate> {
        let pinned: Vec<usize> = plan
            .partitions
            .iter()
            .filter(|partition| self.pins.has_key(&partition.name, "cpu"))
            .filter_map(|partition| partition.cpu)
            .collect();
        let place = |order: &[usize]| -> Option<Plan> {
            let mut free = order.iter().filter(|cpu| !pinned.contains(cpu));
            let mut plan = plan.clone();
            for partition in &mut plan.partitions {
                if !self.pins.has_key(&partition.name, "cpu") {
                    partition.cpu = Some(*free.next()?);
                }
            }
            Some(plan)
        };
        let placed = self.cpu_orders.iter().filter_map(|(what, order)| {
            Some(Candidate { what: what.clone(), plan: place(order)?, size_bytes: None })
        });
        let mut all: Vec<Candidate> = placed.collect();
        let mut anywhere = plan.clone();
        for partition in &mut anywhere.partitions {
            let spins = partition.wait == WaitMode::Spin;
            if !spins && !self.pins.has_key(&partition.name, "cpu") {
                partition.cpu = None;
            }
        }
        let what = "wherever the kernel likes".to_owned();
        all.push(Candidate { what, plan: anywhere, size_bytes: None });
        all.dedup_by(|a, b| a.plan == b.plan);
        all
    }
}

/// Replaces a size and returns the old one; with `None` it only returns it.
fn swap(field: &mut usize, size: Option<usize>) -> usize {
    std::mem::replace(field, size.unwrap_or(*field))
}

/// Makes partitions named after their first blocks, like the runtime's own.
fn name_groups(pins: &Pins, shape: &GraphOutline, groups: &[Vec<usize>]) -> Vec<Partition> {
    let name = |group: &Vec<usize>| {
        let mut name = shape.blocks[group[0]].clone();
        while pins.has_partition(&name) {
            name.push('_');
        }
        let blocks = group.iter().map(|at| shape.blocks[*at].clone()).collect();
        Partition { name, blocks, cpu: None, wait: WaitMode::Park }
    };
    groups.iter().map(name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(names: &[&str]) -> Plan {
        let partition = |name: &&str| Partition {
            name: (*name).to_owned(),
            blocks: vec![(*name).to_owned()],
            cpu: None,
            wait: WaitMode::Park,
        };
        Plan { partitions: names.iter().map(partition).collect(), ..Plan::default() }
    }

    #[test]
    fn who_spins_has_a_cpu_of_its_own() {
        let space = Space { waits: vec![WaitMode::Spin], ..Space::default() };
        let mut pinned = plan(&["a", "b"]);
        assert!(space.candidates(TuningStage::Wait, &pinned, false).is_empty());
        pinned.partitions[1].cpu = Some(1);
        let found = space.candidates(TuningStage::Wait, &pinned, false);
        let waits: Vec<_> = found[0].plan.partitions.iter().map(|one| one.wait).collect();
        assert_eq!(waits, [WaitMode::Park, WaitMode::Spin]);
    }

    #[test]
    fn cpus_are_given_out_around_those_pinned_by_hand() {
        let text = "[[partition]]\nname = \"a\"\nblocks = [\"a\"]\ncpu = 1\n";
        let pins = Pins::of(text.parse().unwrap());
        let cpu_orders = vec![("all".to_owned(), vec![0, 1, 2]), ("few".to_owned(), vec![0, 1])];
        let space = Space { pins, cpu_orders, ..Space::default() };
        let mut start = plan(&["a", "b", "c"]);
        start.partitions[0].cpu = Some(1);
        let found = space.candidates(TuningStage::Cpus, &start, false);
        let cpus: Vec<_> = found[0].plan.partitions.iter().map(|one| one.cpu).collect();
        assert_eq!((found.len(), cpus), (1, vec![Some(1), Some(0), Some(2)]));
    }

    #[test]
    fn a_suggestion_that_is_known_is_not_tried_twice() {
        let mut space = Space::default();
        let mut suggested = plan(&["a", "b"]);
        suggested.partitions[0].cpu = Some(3);
        space.suggest("first", &suggested);
        suggested.partitions.reverse();
        space.suggest("again", &suggested);
        assert_eq!(space.layouts.len(), 1);
        assert_eq!(space.layouts[0].partitions[0].cpu, None);
    }

    #[test]
    fn rings_between_partitions_are_no_matter_of_one_partition() {
        let space = Space { between_bytes: vec![1 << 16], ..Space::default() };
        assert!(space.candidates(TuningStage::Between, &plan(&["a"]), false).is_empty());
        assert_eq!(space.candidates(TuningStage::Between, &plan(&["a", "b"]), false).len(), 1);
    }
}
