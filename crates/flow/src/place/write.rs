//! From a placement to a plan.

use super::Hints;
use super::problem::Problem;
use crate::plan::{Partition, Plan, WaitMode};

/// The partitions by hand as they are, then one for each CPU that has other blocks.
pub(super) fn plan(problem: &Problem, places: &[usize], hints: &Hints) -> Plan {
    let mut partitions = hints.plan.partitions.clone();
    let mut order: Vec<usize> = Vec::new();
    for (unit, is) in problem.units.iter().enumerate() {
        if is.by_hand.is_none() && !order.contains(&places[unit]) {
            order.push(places[unit]);
        }
    }
    for cpu in order {
        let here = |block: &usize| {
            let unit = problem.unit_of[*block];
            problem.units[unit].by_hand.is_none() && places[unit] == cpu
        };
        let blocks: Vec<usize> = (0..problem.shape.blocks.len()).filter(here).collect();
        let name = unused_name(&partitions, problem, &blocks);
        let number = problem.machine.cpus[cpu].number;
        partitions.push(Partition {
            name,
            blocks: blocks.iter().map(|b| problem.shape.blocks[*b].name.clone()).collect(),
            cpu: (!hints.unpinned).then_some(number),
            wait: WaitMode::Park,
        });
    }
    Plan { partitions, ..hints.plan.clone() }
}

/// A partition is called after the block that works most in it.
fn unused_name(others: &[Partition], problem: &Problem, blocks: &[usize]) -> String {
    let work = |block: &&usize| problem.units[problem.unit_of[**block]].work;
    let mut first = blocks[0];
    for block in blocks {
        if work(&block) > work(&&first) {
            first = *block;
        }
    }
    let mut name = problem.shape.blocks[first].name.clone();
    while others.iter().any(|other| other.name == name) {
        name.push('_');
    }
    name
}
