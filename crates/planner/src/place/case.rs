//! The partitioner's input: a graph on a machine, converted to numbers and back to names.

use super::Hints;
use super::costs::Distance;
use super::machine::CpuPositions;
use super::problem::{PlacementProblem, Time, Unit, UnitTraffic, crowded};
use millstream_cpu::{CpuSet, Topology};
use millstream_flow::observe::{BlockCost, EdgeCost, Profile};
use millstream_flow::plan::{PlanError, WaitMode};
use millstream_flow::{EdgeShape, Shape};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

const PS_PER_NS: f64 = 1e3;

/// The input of the partitioner.
#[derive(Debug)]
pub(super) struct PlacementCase {
    pub(super) shape: Shape,
    /// The measured profile, or the nominal one.
    pub(super) profile: Profile,
    /// Whether `profile` was measured.
    pub(super) measured: bool,
    /// Unit of each block. The partitions by hand are the first units, the other blocks follow.
    pub(super) unit_of: Vec<usize>,
    pub(super) problem: PlacementProblem,
}

/// The traffic of a connection.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Traffic {
    pub(super) bytes: f64,
    pub(super) batches: f64,
}

impl PlacementCase {
    pub(super) fn new(
        shape: &Shape,
        profile: &Profile,
        topology: &Topology,
        hints: &Hints,
    ) -> Result<Self, PlanError> {
        let topology = usable(topology, hints);
        let allowed = topology.cpus();
        let measured = profile.blocks.iter().any(|block| block.busy_ns > 0);
        let profile = if measured { profile.clone() } else { shape.nominal() };
        let machine = Arc::new(CpuPositions::new(&topology));
        let unit_of = unit_of_each(shape, hints, &allowed)?;
        let units = units(shape, &profile, &machine, hints, &unit_of, &allowed)?;
        let links = links(shape, &profile, &unit_of, hints);
        let crowded = crowded(&units, machine.len());
        let mut problem = PlacementProblem {
            max_cpus: hints.max_cpus.unwrap_or(usize::MAX).clamp(1, machine.len()),
            machine,
            units: Vec::new(),
            links: Vec::new(),
            links_of: Vec::new(),
            smt: hints.costs.smt,
            quantum: 1,
            worthwhile: hints.costs.worthwhile,
            crowded,
        }
        .with(units, links);
        let step = hints.costs.resolution * problem.least_bottleneck() as f64;
        problem.quantum = (step as Time).max(1);
        Ok(Self { shape: shape.clone(), profile, measured, unit_of, problem })
    }

    /// Returns the traffic of a connection of the shape.
    pub(super) fn traffic(&self, edge: &EdgeShape) -> Traffic {
        traffic(&self.shape, &self.profile, edge)
    }

    /// Returns the name of the first block of a unit.
    pub(super) fn name_of(&self, unit: usize) -> String {
        let block = self.unit_of.iter().position(|of| *of == unit);
        block.map(|block| self.shape.blocks[block].name.clone()).unwrap_or_default()
    }

    /// Returns the work of a block on a CPU of full capacity.
    pub(super) fn work(&self, block: usize) -> Time {
        work(&self.shape, &self.profile, block)
    }
}

/// Returns the part of the topology that the hints allow; at least one CPU.
fn usable(topology: &Topology, hints: &Hints) -> Topology {
    let Some(allowed) = &hints.allowed else {
        let none = topology.cores.is_empty();
        return if none { Topology::flat(&CpuSet::from_iter([0])) } else { topology.clone() };
    };
    let usable = topology.only(allowed);
    if usable.cores.len() == allowed.len() && !allowed.is_empty() {
        return usable;
    }
    // The topology lacks some of the allowed CPUs: nothing is known of how they are related.
    let some = if allowed.is_empty() { CpuSet::from_iter([0]) } else { allowed.clone() };
    Topology::flat(&some)
}

/// Checks the user's decisions, and numbers the units.
fn unit_of_each(shape: &Shape, hints: &Hints, allowed: &CpuSet) -> Result<Vec<usize>, PlanError> {
    hints.plan.check_partitions(allowed)?;
    let unknown = hints.pins.iter().find(|(block, _)| shape.position(block).is_none());
    if let Some((block, cpu)) = unknown {
        return Err(PlanError::PinnedBlock { block: block.clone(), cpu: *cpu });
    }
    let by_hand = hints.plan.partition_of_each(shape.blocks.len(), |name| shape.position(name))?;
    let mut next = hints.plan.partitions.len();
    let number = |partition: Option<usize>| {
        partition.unwrap_or_else(|| {
            next += 1;
            next - 1
        })
    };
    Ok(by_hand.into_iter().map(number).collect())
}

fn units(
    shape: &Shape,
    profile: &Profile,
    machine: &CpuPositions,
    hints: &Hints,
    unit_of: &[usize],
    allowed: &CpuSet,
) -> Result<Vec<Unit>, PlanError> {
    let by_hand = &hints.plan.partitions;
    let count = unit_of.iter().map(|unit| unit + 1).max().unwrap_or(0).max(by_hand.len());
    let (ranks, lines) = (shape.ranks(), shape.depth_first());
    let mut units = Vec::with_capacity(count);
    for unit in 0..count {
        let inside = (0..unit_of.len()).filter(|block| unit_of[*block] == unit);
        let blocks: Vec<usize> = inside.collect();
        let total = blocks.iter().map(|block| work(shape, profile, *block)).sum();
        let mean = |of: &[usize]| {
            let sum: usize = blocks.iter().map(|block| of[*block]).sum();
            sum as f64 / blocks.len().max(1) as f64
        };
        let mut is = Unit::new(total, (mean(&ranks), mean(&lines)), machine);
        if let Some(partition) = by_hand.get(unit) {
            is.by_hand = true;
            is.pinned = partition.cpu.and_then(|cpu| machine.position(cpu));
            is.spins = partition.wait == WaitMode::Spin;
        } else {
            is.pinned = pin_of(&shape.blocks[blocks[0]].name, machine, hints, allowed)?;
        }
        units.push(is);
    }
    Ok(units)
}

fn pin_of(
    block: &str,
    machine: &CpuPositions,
    hints: &Hints,
    allowed: &CpuSet,
) -> Result<Option<usize>, PlanError> {
    let Some(cpu) = hints.pins.get(block) else { return Ok(None) };
    let position = machine.position(*cpu).ok_or_else(|| PlanError::PinnedCpu {
        block: block.to_owned(),
        cpu: *cpu,
        allowed: allowed.clone(),
    })?;
    Ok(Some(position))
}

/// Returns the work of a block on a CPU of full capacity. A block that the profile lacks is assumed
/// to be like the others.
fn work(shape: &Shape, profile: &Profile, block: usize) -> Time {
    let known = profile.block(&shape.blocks[block].name).map(|block| block.busy_ns);
    let all = || profile.blocks.iter().map(|block| block.busy_ns).sum::<u64>();
    let ns = known.unwrap_or_else(|| all() / profile.blocks.len().max(1) as u64);
    (ns as f64 * PS_PER_NS) as Time
}

fn links(shape: &Shape, profile: &Profile, unit_of: &[usize], hints: &Hints) -> Vec<UnitTraffic> {
    let mut between: BTreeMap<(usize, usize), Traffic> = BTreeMap::new();
    for edge in &shape.edges {
        let ends = (unit_of[edge.from], unit_of[edge.to]);
        if ends.0 != ends.1 {
            let passes = traffic(shape, profile, edge);
            let sum = between.entry(ends).or_default();
            sum.bytes += passes.bytes;
            sum.batches += passes.batches;
        }
    }
    let links = between.into_iter().map(|((from, to), traffic)| {
        let prices = Distance::ALL.map(|distance| {
            let price = hints.costs.price(distance);
            let of = |ns: f64| {
                let ns = traffic.bytes * ns + traffic.batches * hints.costs.batch_ns;
                (ns * PS_PER_NS).round() as Time
            };
            (of(price.write_ns), of(price.read_ns))
        });
        UnitTraffic { from, to, prices }
    });
    links.collect()
}

fn traffic(shape: &Shape, profile: &Profile, edge: &EdgeShape) -> Traffic {
    let writer = profile.block(&shape.blocks[edge.from].name);
    let same = |known: &&EdgeCost| known.to == edge.input;
    let items = match profile.edges.iter().find(same) {
        Some(known) => known.items,
        // A profile without connections: the writer's items, over its outputs.
        None => {
            let others = shape.edges.iter().filter(|other| other.from == edge.from);
            let outputs: BTreeSet<&str> = others.map(|other| other.output.as_str()).collect();
            writer.map_or(0, |block| block.items_out) / outputs.len().max(1) as u64
        }
    };
    let calls = writer.map_or(items, |block: &BlockCost| block.calls);
    Traffic { bytes: items as f64 * edge.item_bytes as f64, batches: calls.min(items) as f64 }
}
