//! Every combination of the choices of a space, coarsely.

use super::search::STAGES;
use super::space::{Candidate, Space};
use millstream_flow::plan::Plan;
use std::collections::HashSet;

/// One of so many sizes, which are octaves apart, is used.
const EVERY: usize = 3;

impl Space {
    /// Returns a space of fewer sizes, a factor of eight apart, without CPUs: all of its
    /// combinations can be measured.
    #[must_use]
    pub fn coarse(&self) -> Self {
        let few = |sizes: &[usize]| sizes.iter().copied().step_by(EVERY).collect();
        Self {
            batch_bytes: few(&self.batch_bytes),
            inside_bytes: few(&self.inside_bytes),
            between_bytes: few(&self.between_bytes),
            cpu_orders: Vec::new(),
            refine: false,
            ..self.clone()
        }
    }

    /// Returns the number of ways in which `plan` can be changed.
    pub(super) fn axes(&self, plan: &Plan) -> usize {
        STAGES.iter().filter(|stage| !self.candidates(**stage, plan, false).is_empty()).count()
    }

    /// Returns `default` and all its changes by one choice of each stage. Of plans with the same
    /// behaviour there is one.
    pub(super) fn combinations(&self, default: &Plan) -> Vec<Candidate> {
        let (what, plan) = (String::new(), default.clone());
        let mut all = vec![Candidate { what, plan, size_bytes: None }];
        for stage in STAGES {
            let more: Vec<Candidate> = all
                .iter()
                .flat_map(|base| {
                    let made = self.candidates(stage, &base.plan, false).into_iter();
                    made.map(|one| Candidate {
                        what: format!("{}{stage}: {}, ", base.what, one.what),
                        size_bytes: None,
                        ..one
                    })
                })
                .collect();
            all.extend(more);
        }
        let mut seen = HashSet::new();
        all.retain_mut(|candidate| {
            candidate.what.truncate(candidate.what.len().saturating_sub(2));
            seen.insert(essence(&candidate.plan).to_toml())
        });
        all
    }
}

/// Returns `plan` without the sizes of rings that it does not have: plans with the same result run
/// alike.
fn essence(plan: &Plan) -> Plan {
    let mut plan = plan.clone();
    if plan.partitions.len() == 1 {
        plan.buffers.between_bytes = 0;
    }
    if plan.partitions.iter().all(|partition| partition.blocks.len() == 1) {
        plan.buffers.inside_bytes = 0;
    }
    plan
}

#[cfg(test)]
mod tests {
    use super::super::layout::cuts;
    use super::super::space::PlanLayout;
    use super::*;
    use millstream_flow::plan::{Partition, WaitMode};

    fn partitions(groups: &[Vec<usize>]) -> Vec<Partition> {
        let name = |group: &Vec<usize>| format!("block_{}", group[0]);
        let blocks = |group: &[usize]| group.iter().map(|at| format!("block_{at}")).collect();
        let make = |group: &Vec<usize>| Partition {
            name: name(group),
            blocks: blocks(group),
            cpu: None,
            wait: WaitMode::Park,
        };
        groups.iter().map(make).collect()
    }

    #[test]
    fn every_combination_is_there_and_none_that_runs_like_another() {
        let blocks = [0, 1, 2];
        let layouts = cuts(&blocks, &[1.0; 3], &[blocks.to_vec()], 2).into_iter();
        let layouts = layouts.map(|(what, groups)| {
            let partitions = partitions(&groups);
            PlanLayout { what, partitions }
        });
        let space = Space {
            layouts: layouts.collect(),
            inside_bytes: vec![8 << 10, 64 << 10],
            between_bytes: vec![64 << 10, 256 << 10, 512 << 10],
            waits: vec![WaitMode::Park, WaitMode::Adaptive],
            ..Space::default()
        };
        let default = Plan { partitions: partitions(&[vec![0, 1, 2]]), ..Plan::default() };
        assert_eq!(space.axes(&default), 3, "there is nothing between the parts of one");
        let all = space.combinations(&default);
        // One partition: rings inside and waiting. Two: everything. A partition each: not inside.
        let expected = 2 * 2 + 2 * (2 * 3 * 2) + 3 * 2;
        assert_eq!(all.len(), expected);
        assert_eq!(all[0].plan, default);
        let what = "partitions: 2 runs of equal length, rings between: 64 KiB, waiting: adaptive";
        let is = |one: &&Candidate| one.what == what;
        assert_eq!(all.iter().filter(is).count(), 1);
    }
}
