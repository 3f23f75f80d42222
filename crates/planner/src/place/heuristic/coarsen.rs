//! Merges units along their heaviest links, so that a small problem represents a large one.

use crate::place::Distance;
use crate::place::problem::{PlacementProblem, Prices, Time, Unit, UnitTraffic};
use std::collections::BTreeMap;

/// A coarser problem.
pub(super) struct Level {
    pub(super) problem: PlacementProblem,
    /// Unit of this level for each unit of the finer one.
    pub(super) unit_of: Vec<usize>,
}

/// Returns coarser and coarser problems, until one has few units or no units can be merged.
pub(super) fn levels(problem: &PlacementProblem, cpus: usize, few: usize) -> Vec<Level> {
    let few = few.max(3 * cpus);
    let total: Time = problem.units.iter().map(|unit| unit.work).sum();
    let heaviest = problem.units.iter().map(|unit| unit.work).max().unwrap_or(0);
    // Merged units that are still small compared with a CPU's share.
    let most = (total / (3 * cpus as Time).max(1)).max(heaviest);
    let mut levels: Vec<Level> = Vec::new();
    loop {
        let finer = levels.last().map_or(problem, |level| &level.problem);
        if finer.units.len() <= few {
            return levels;
        }
        let level = merge(finer, most);
        // Fewer than a tenth were merged: the rest cannot be.
        if level.problem.units.len() * 10 > finer.units.len() * 9 {
            return levels;
        }
        levels.push(level);
    }
}

/// Merges pairs of units, each with the neighbour of its heaviest link.
fn merge(finer: &PlacementProblem, most: Time) -> Level {
    let count = finer.units.len();
    let mut partner: Vec<Option<usize>> = vec![None; count];
    let mut links: Vec<&UnitTraffic> = finer.links.iter().collect();
    links.sort_by_key(|link| std::cmp::Reverse(weight(link)));
    for link in links {
        let (a, b) = (&finer.units[link.from], &finer.units[link.to]);
        let free = partner[link.from].is_none() && partner[link.to].is_none();
        if free && mergeable(a) && mergeable(b) && a.work + b.work <= most {
            partner[link.from] = Some(link.to);
            partner[link.to] = Some(link.from);
        }
    }
    let mut unit_of = vec![usize::MAX; count];
    let mut units: Vec<Unit> = Vec::new();
    for unit in 0..count {
        match partner[unit].filter(|other| *other < unit) {
            Some(other) => {
                unit_of[unit] = unit_of[other];
                absorb(&mut units[unit_of[other]], &finer.units[unit]);
            }
            None => {
                unit_of[unit] = units.len();
                units.push(finer.units[unit].clone());
            }
        }
    }
    let links = merged_links(finer, &unit_of);
    Level { problem: finer.with(units, links), unit_of }
}

fn mergeable(unit: &Unit) -> bool {
    !unit.by_hand && unit.pinned.is_none()
}

fn absorb(into: &mut Unit, other: &Unit) {
    into.rank = into.rank.midpoint(other.rank);
    into.line = into.line.midpoint(other.line);
    into.work += other.work;
    into.work_on.iter_mut().zip(&other.work_on).for_each(|(sum, work)| *sum += work);
}

fn weight(link: &UnitTraffic) -> Time {
    let (writes, reads) = link.prices[Distance::SharedL3 as usize];
    writes + reads
}

fn merged_links(finer: &PlacementProblem, unit_of: &[usize]) -> Vec<UnitTraffic> {
    let mut between: BTreeMap<(usize, usize), Prices> = BTreeMap::new();
    for link in &finer.links {
        let (from, to) = (unit_of[link.from], unit_of[link.to]);
        if from == to {
            continue;
        }
        let sums = between.entry((from, to)).or_default();
        for (sum, price) in sums.iter_mut().zip(link.prices) {
            *sum = (sum.0 + price.0, sum.1 + price.1);
        }
    }
    between.into_iter().map(|((from, to), prices)| UnitTraffic { from, to, prices }).collect()
}
