//! The problem as numbers: units to place, links between them, CPUs.
//!
//! Times are whole picoseconds, so that sums do not depend on their order and the exact search
//! can take back what it added.

use super::Hints;
use super::costs::Distance;
use super::machine::Machine;
use super::shape::{EdgeShape, Shape};
use crate::plan::{PlanError, WaitMode};
use crate::profile::{BlockCost, Profile};
use millstream_sys::{CpuSet, Topology};
use std::collections::BTreeMap;

/// Picoseconds.
pub(super) type Time = u64;

const PS_PER_NS: f64 = 1e3;

/// Everything that the search looks at.
#[derive(Debug)]
pub(super) struct Problem {
    pub(super) shape: Shape,
    /// The measured profile, or the nominal one.
    pub(super) profile: Profile,
    /// Whether `profile` was measured.
    pub(super) measured: bool,
    pub(super) machine: Machine,
    pub(super) units: Vec<Unit>,
    pub(super) links: Vec<Link>,
    /// Links of each unit.
    pub(super) links_of: Vec<Vec<usize>>,
    /// Unit of each block.
    pub(super) unit_of: Vec<usize>,
    pub(super) smt: f64,
    /// Bottlenecks that fall into the same step of this size are equal.
    pub(super) quantum: Time,
    pub(super) worthwhile: f64,
    pub(super) max_cpus: usize,
    /// Too few CPUs to give each spinning partition its own.
    pub(super) crowded: bool,
}

/// What is placed as a whole: a block, or a partition made by hand.
#[derive(Clone, Debug)]
pub(super) struct Unit {
    pub(super) blocks: Vec<usize>,
    /// The partition by hand that it is; nobody joins it.
    pub(super) by_hand: Option<usize>,
    /// The CPU it must be on, by position.
    pub(super) pinned: Option<usize>,
    /// Whether it burns its CPU.
    pub(super) spins: bool,
    /// Work on a CPU of full capacity.
    pub(super) work: Time,
    /// Work on each CPU.
    pub(super) work_on: Vec<Time>,
}

/// Everything that passes from one unit to another.
#[derive(Clone, Debug)]
pub(super) struct Link {
    pub(super) from: usize,
    pub(super) to: usize,
    /// What the writer and the reader pay at each distance.
    pub(super) prices: [(Time, Time); Distance::ALL.len()],
}

/// What passes a connection.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Traffic {
    pub(super) bytes: f64,
    pub(super) batches: f64,
}

impl Problem {
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
        let machine = Machine::new(&topology);
        let mut units = by_hand(shape, &machine, hints, &allowed)?;
        let mut unit_of = vec![usize::MAX; shape.blocks.len()];
        for (index, unit) in units.iter().enumerate() {
            unit.blocks.iter().for_each(|block| unit_of[*block] = index);
        }
        for (block, unit) in unit_of.iter_mut().enumerate().filter(|(_, u)| **u == usize::MAX) {
            *unit = units.len();
            let pinned = pin_of(&shape.blocks[block].name, &machine, hints, &allowed)?;
            units.push(Unit { pinned, ..Unit::of(vec![block]) });
        }
        weigh(&mut units, shape, &profile, &machine);
        let links = links(shape, &profile, &unit_of, hints);
        let links_of = (0..units.len()).map(|unit| {
            let touches = |link: &usize| links[*link].from == unit || links[*link].to == unit;
            (0..links.len()).filter(touches).collect()
        });
        let links_of = links_of.collect();
        let crowded = crowded(&units, machine.len());
        let max_cpus = hints.max_cpus.unwrap_or(usize::MAX).clamp(1, machine.len());
        let mut problem = Self {
            shape: shape.clone(),
            profile,
            measured,
            machine,
            units,
            links,
            links_of,
            unit_of,
            smt: hints.costs.smt,
            quantum: 1,
            worthwhile: hints.costs.worthwhile,
            max_cpus,
            crowded,
        };
        let step = hints.costs.resolution * problem.least_bottleneck() as f64;
        problem.quantum = (step as Time).max(1);
        Ok(problem)
    }

    /// No plan can do better: the heaviest unit alone, and all work spread evenly.
    pub(super) fn least_bottleneck(&self) -> Time {
        let alone = self.units.iter().map(|unit| match unit.pinned {
            Some(cpu) => unit.work_on[cpu],
            None => unit.work_on.iter().copied().min().unwrap_or(0),
        });
        let capacity: f64 = self.machine.cpus.iter().map(|cpu| cpu.capacity).sum();
        let evenly = self.units.iter().map(|unit| unit.work).sum::<Time>() as f64 / capacity;
        alone.max().unwrap_or(0).max(evenly as Time)
    }

    /// The fewest CPUs that pins and spinning partitions allow.
    pub(super) fn least_cpus(&self) -> usize {
        let mut pinned: Vec<usize> = self.units.iter().filter_map(|unit| unit.pinned).collect();
        pinned.sort_unstable();
        pinned.dedup();
        let own = |unit: &&Unit| unit.spins && unit.pinned.is_none() && !self.crowded;
        let owners = self.units.iter().filter(own).count();
        let free = self.units.iter().any(|unit| !unit.spins && unit.pinned.is_none());
        let open = pinned.iter().any(|cpu| self.crowded || !self.is_burnt(*cpu));
        pinned.len() + owners + usize::from((free && !open) || self.units.is_empty())
    }

    /// Whether a spinning partition is pinned to this CPU.
    fn is_burnt(&self, cpu: usize) -> bool {
        self.units.iter().any(|unit| unit.spins && unit.pinned == Some(cpu))
    }

    /// What passes a connection of the shape.
    pub(super) fn traffic(&self, edge: &EdgeShape) -> Traffic {
        traffic(&self.shape, &self.profile, edge)
    }
}

impl Unit {
    fn of(blocks: Vec<usize>) -> Self {
        let work_on = Vec::new();
        Self { blocks, by_hand: None, pinned: None, spins: false, work: 0, work_on }
    }
}

/// The topology that the hints leave, never empty.
fn usable(topology: &Topology, hints: &Hints) -> Topology {
    let Some(allowed) = &hints.allowed else {
        let none = topology.cores.is_empty();
        return if none { Topology::flat(&CpuSet::from_iter([0])) } else { topology.clone() };
    };
    let usable = topology.only(allowed);
    if usable.cores.len() == allowed.len() && !allowed.is_empty() {
        return usable;
    }
    // The topology does not know all of them.
    let some = if allowed.is_empty() { CpuSet::from_iter([0]) } else { allowed.clone() };
    Topology::flat(&some)
}

fn by_hand(
    shape: &Shape,
    machine: &Machine,
    hints: &Hints,
    allowed: &CpuSet,
) -> Result<Vec<Unit>, PlanError> {
    hints.plan.check_partitions(allowed)?;
    let of_block = hints.plan.partition_of_each(shape.blocks.len(), |n| shape.position(n))?;
    let units = hints.plan.partitions.iter().enumerate().map(|(index, partition)| {
        let inside = |block: &usize| of_block[*block] == Some(index);
        Unit {
            by_hand: Some(index),
            pinned: partition.cpu.and_then(|cpu| machine.position(cpu)),
            spins: partition.wait == WaitMode::Spin,
            ..Unit::of((0..of_block.len()).filter(inside).collect())
        }
    });
    for (block, cpu) in &hints.pins {
        if shape.position(block).is_none() {
            return Err(PlanError::PinnedBlock { block: block.clone(), cpu: *cpu });
        }
    }
    Ok(units.collect())
}

fn pin_of(
    block: &str,
    machine: &Machine,
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

/// Sums the work of the blocks of every unit.
fn weigh(units: &mut [Unit], shape: &Shape, profile: &Profile, machine: &Machine) {
    let known: Vec<u64> = profile.blocks.iter().map(|block| block.busy_ns).collect();
    // A block that the profile does not know is taken to be like the others.
    let mean = known.iter().sum::<u64>() / known.len().max(1) as u64;
    for unit in units {
        let names = unit.blocks.iter().map(|block| &shape.blocks[*block].name);
        let ns: u64 =
            names.map(|name| profile.block(name).map_or(mean, |block| block.busy_ns)).sum();
        unit.work = (ns as f64 * PS_PER_NS) as Time;
        let on = machine.cpus.iter().map(|cpu| (unit.work as f64 / cpu.capacity).round() as Time);
        unit.work_on = on.collect();
    }
}

fn links(shape: &Shape, profile: &Profile, unit_of: &[usize], hints: &Hints) -> Vec<Link> {
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
        Link { from, to, prices }
    });
    links.collect()
}

fn traffic(shape: &Shape, profile: &Profile, edge: &EdgeShape) -> Traffic {
    let writer = profile.block(&shape.blocks[edge.from].name);
    let same = |known: &&crate::profile::EdgeCost| known.to == edge.input;
    let items = match profile.edges.iter().find(same) {
        Some(known) => known.items,
        // A profile without connections: the writer's items, over its outputs.
        None => {
            let mut outputs: Vec<&str> = shape
                .edges
                .iter()
                .filter(|other| other.from == edge.from)
                .map(|other| other.output.as_str())
                .collect();
            outputs.sort_unstable();
            outputs.dedup();
            writer.map_or(0, |block| block.items_out) / outputs.len().max(1) as u64
        }
    };
    let calls = writer.map_or(items, |block: &BlockCost| block.calls);
    Traffic { bytes: items as f64 * edge.item_bytes as f64, batches: calls.min(items) as f64 }
}

/// Whether spinning partitions would leave no CPU for what must run beside them.
fn crowded(units: &[Unit], cpus: usize) -> bool {
    let mut pinned: Vec<usize> = units.iter().filter_map(|unit| unit.pinned).collect();
    pinned.sort_unstable();
    pinned.dedup();
    let owners = units.iter().filter(|unit| unit.spins && unit.pinned.is_none()).count();
    let free = units.iter().any(|unit| !unit.spins && unit.pinned.is_none());
    pinned.len() + owners + usize::from(free) > cpus
}
