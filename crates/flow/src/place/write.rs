//! From a placement to a plan.

use super::Hints;
use super::case::Case;
use crate::plan::{Partition, Plan, WaitMode};

/// The partitions by hand as they are, then one for each CPU that has other blocks.
pub(super) fn plan(case: &Case, places: &[usize], hints: &Hints) -> Plan {
    let mut partitions = hints.plan.partitions.clone();
    let mut order: Vec<usize> = Vec::new();
    for (unit, is) in case.problem.units.iter().enumerate() {
        if !is.by_hand && !order.contains(&places[unit]) {
            order.push(places[unit]);
        }
    }
    for cpu in order {
        let here = |block: &usize| {
            let unit = case.unit_of[*block];
            !case.problem.units[unit].by_hand && places[unit] == cpu
        };
        let blocks: Vec<usize> = (0..case.shape.blocks.len()).filter(here).collect();
        let name = unused_name(&partitions, case, &blocks);
        let number = case.problem.machine.cpus[cpu].number;
        partitions.push(Partition {
            name,
            blocks: blocks.iter().map(|b| case.shape.blocks[*b].name.clone()).collect(),
            cpu: (!hints.unpinned).then_some(number),
            wait: WaitMode::Park,
        });
    }
    Plan { partitions, ..hints.plan.clone() }
}

/// A partition is called after the block that works most in it.
fn unused_name(others: &[Partition], case: &Case, blocks: &[usize]) -> String {
    let work = |block: &&usize| case.work(**block);
    let mut first = blocks[0];
    for block in blocks {
        if work(&block) > work(&&first) {
            first = *block;
        }
    }
    let mut name = case.shape.blocks[first].name.clone();
    while others.iter().any(|other| other.name == name) {
        name.push('_');
    }
    name
}
