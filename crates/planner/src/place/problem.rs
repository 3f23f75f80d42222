//! The problem as numbers: units to place, links between them, CPUs.
//!
//! Times are whole picoseconds, so that sums do not depend on their order and a search can take
//! back what it added.

use super::costs::Distance;
use super::machine::CpuPositions;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Picoseconds.
pub(super) type Time = u64;

/// The input of a search.
#[derive(Clone, Debug)]
pub(super) struct PlacementProblem {
    pub(super) machine: Arc<CpuPositions>,
    pub(super) units: Vec<Unit>,
    pub(super) links: Vec<UnitTraffic>,
    /// Links of each unit.
    pub(super) links_of: Vec<Vec<usize>>,
    /// Factor by which work takes longer next to a busy sibling.
    pub(super) smt: f64,
    /// Bottlenecks that fall into the same step of this size are equal.
    pub(super) quantum: Time,
    /// The gain below which more CPUs are not used.
    pub(super) worthwhile: f64,
    pub(super) max_cpus: usize,
    /// There are too few CPUs to give each spinning partition its own.
    pub(super) crowded: bool,
}

/// A group of blocks that is placed as a whole: a block, a partition made by hand, or several
/// merged units.
#[derive(Clone, Debug)]
pub(super) struct Unit {
    /// A partition by hand, which other units cannot join.
    pub(super) by_hand: bool,
    /// The CPU that it must be on, by position.
    pub(super) pinned: Option<usize>,
    /// Whether it spins.
    pub(super) spins: bool,
    /// Its position in the order that items pass: a mean over its blocks.
    pub(super) rank: f64,
    /// The same when each path is followed to its end before the next.
    pub(super) line: f64,
    /// Work on a CPU of full capacity.
    pub(super) work: Time,
    /// Work on each CPU.
    pub(super) work_on: Vec<Time>,
}

/// The cost for writer and reader at each distance.
pub(super) type Prices = [(Time, Time); Distance::ALL.len()];

/// The traffic from one unit to another.
#[derive(Clone, Debug)]
pub(super) struct UnitTraffic {
    pub(super) from: usize,
    pub(super) to: usize,
    pub(super) prices: Prices,
}

impl Unit {
    /// Makes a unit of this much work that may go to any CPU.
    pub(super) fn new(work: Time, (rank, line): (f64, f64), machine: &CpuPositions) -> Self {
        let on = machine.cpus.iter().map(|cpu| (work as f64 / cpu.capacity).round() as Time);
        let work_on = on.collect();
        Self { by_hand: false, pinned: None, spins: false, rank, line, work, work_on }
    }
}

impl PlacementProblem {
    /// Replaces units and links.
    pub(super) fn with(&self, units: Vec<Unit>, links: Vec<UnitTraffic>) -> Self {
        let mut links_of = vec![Vec::new(); units.len()];
        for (index, link) in links.iter().enumerate() {
            links_of[link.from].push(index);
            links_of[link.to].push(index);
        }
        Self { units, links, links_of, machine: Arc::clone(&self.machine), ..*self }
    }

    /// Returns a lower bound for every plan: the heaviest unit alone, and all work spread evenly.
    pub(super) fn least_bottleneck(&self) -> Time {
        let alone = self.units.iter().map(|unit| match unit.pinned {
            Some(cpu) => unit.work_on[cpu],
            None => unit.work_on.iter().copied().min().unwrap_or(0),
        });
        let capacity: f64 = self.machine.cpus.iter().map(|cpu| cpu.capacity).sum();
        let evenly = self.units.iter().map(|unit| unit.work).sum::<Time>() as f64 / capacity;
        alone.max().unwrap_or(0).max(evenly as Time)
    }

    /// Returns the fewest CPUs that pins and spinning partitions allow.
    pub(super) fn least_cpus(&self) -> usize {
        let pinned: BTreeSet<usize> = self.units.iter().filter_map(|unit| unit.pinned).collect();
        let own = |unit: &&Unit| unit.spins && unit.pinned.is_none() && !self.crowded;
        let owners = self.units.iter().filter(own).count();
        let free = self.units.iter().any(|unit| !unit.spins && unit.pinned.is_none());
        let spins_on = |cpu| self.units.iter().any(|unit| unit.spins && unit.pinned == Some(cpu));
        let open = pinned.iter().any(|cpu| self.crowded || !spins_on(*cpu));
        pinned.len() + owners + usize::from((free && !open) || self.units.is_empty())
    }
}

/// Whether spinning partitions would leave no CPU for the other units.
pub(super) fn crowded(units: &[Unit], cpus: usize) -> bool {
    let pinned: BTreeSet<usize> = units.iter().filter_map(|unit| unit.pinned).collect();
    let owners = units.iter().filter(|unit| unit.spins && unit.pinned.is_none()).count();
    let free = units.iter().any(|unit| !unit.spins && unit.pinned.is_none());
    pinned.len() + owners + usize::from(free) > cpus
}

/// The scale of times: nanoseconds an item.
pub(super) struct Scale {
    pub(super) items: f64,
}

impl Scale {
    pub(super) fn ns(&self, time: Time) -> f64 {
        time as f64 / 1e3 / self.items
    }
}
