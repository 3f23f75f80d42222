//! Moving a running graph to another plan.

use super::all_stopped::{Absent, AllStopped};
use super::assignment::Assignment;
use super::error::MoveError;
use super::handover::{NewTasks, Role};
use super::placement::Placement;
use super::sync::now;
use super::task::BlockTask;
use super::{RunningGraph, allowed_cpus};
use crate::plan::Plan;
use std::sync::Arc;
use std::time::Duration;

/// The result of a move.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Moved {
    /// Blocks that moved to another thread.
    pub blocks: usize,
    /// Threads that were started.
    pub started: usize,
    /// Threads that were ended.
    pub ended: usize,
    /// Time until the last partition had finished its sweep.
    pub waited: Duration,
    /// Time for which the whole graph stood still after that.
    pub pause: Duration,
}

impl RunningGraph {
    /// Moves the graph to another plan while it runs, and waits up to `limit` for blocks that are
    /// in a call.
    ///
    /// Every partition finishes its sweep and hands in its blocks; they are assigned anew, and the
    /// graph continues from the same state. No item is lost, repeated or reordered. Threads whose
    /// partitions keep their names stay; their number never exceeds that of the larger plan.
    ///
    /// Rings keep their sizes of the start, so the plan's `buffers` have no effect: every ring is
    /// large enough for its ports wherever they run.
    ///
    /// # Errors
    /// [`MoveError`]; the graph continues as before then, unless it has ended.
    pub fn repartition(&mut self, plan: &Plan, limit: Duration) -> Result<Moved, MoveError> {
        let asked = now();
        let placement = plan.place(&self.shape, &allowed_cpus())?;
        let control = Arc::clone(&self.control);
        let stopped = AllStopped::gather(&control, asked + limit)
            .map_err(|absent| self.explain_absence(&absent, limit))?;
        let met = now();
        let mut alive = vec![false; placement.partitions.len()];
        stopped.inspect(|task| alive[placement.of_node[task.node()]] = true);
        let names = placement.partitions.iter().map(|partition| partition.name.as_str());
        let present = stopped.present().into_iter().map(|slot| {
            let name = self.threads.partition(slot).unwrap_or_default().to_owned();
            (slot, name)
        });
        let assigned_slots = Assignment::new(names.zip(alive), present, control.slots());
        let before = self.counters.assign(&placement);
        if let Err(error) = self.start_threads(&placement, &assigned_slots) {
            self.counters.restore(&self.placement, before);
            return Err(error);
        }
        let blocks = self.assign(&stopped, &placement, &assigned_slots);
        drop(stopped);
        self.plan.partitions.clone_from(&placement.partitions);
        self.placement = placement;
        Ok(Moved {
            blocks,
            started: assigned_slots.recruits.len(),
            ended: assigned_slots.dismissed.len(),
            waited: met.duration_since(asked),
            pause: now().saturating_duration_since(met),
        })
    }

    /// Returns the current plan, with the partitions that were made for blocks which the given plan
    /// did not mention.
    #[must_use]
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Starts the threads that the placement needs beyond the present ones. They wait at the safe
    /// point; if one cannot be started, those before it end there.
    fn start_threads(
        &mut self,
        placement: &Placement,
        assigned_slots: &Assignment,
    ) -> Result<(), MoveError> {
        for &partition in &assigned_slots.recruits {
            let role = self.role(placement, partition);
            let slot = assigned_slots.slot_of[partition].expect("a recruit has a slot");
            self.threads.start(slot, role, Vec::new()).map_err(|source| MoveError::Thread {
                partition: placement.partitions[partition].name.clone(),
                source,
            })?;
        }
        Ok(())
    }

    /// Gives every thread its blocks; returns how many blocks moved to another thread.
    fn assign(
        &mut self,
        stopped: &AllStopped<'_>,
        placement: &Placement,
        assigned_slots: &Assignment,
    ) -> usize {
        let mut tasks: Vec<Option<BlockTask>> = placement.of_node.iter().map(|_| None).collect();
        for task in stopped.collect() {
            let node = task.node();
            tasks[node] = Some(task);
        }
        for slot in &assigned_slots.dismissed {
            stopped.assign(*slot, NewTasks::Dismissed);
            // Never one thread too many, not even now.
            self.threads.join(*slot);
        }
        let before = std::mem::take(&mut self.slot_of_node);
        self.slot_of_node = assigned_slots.of_nodes(placement, &before);
        self.control.assign(&self.slot_of_node);
        let changed = |node: &usize| before[*node] != self.slot_of_node[*node];
        let blocks = (0..tasks.len()).filter(changed).filter(|node| tasks[*node].is_some()).count();
        for (node, task) in tasks.iter_mut().enumerate() {
            if let Some(task) = task {
                task.set_neighbours(self.neighbours(node));
            }
        }
        for (partition, slot) in assigned_slots.slot_of.iter().enumerate() {
            let Some(slot) = *slot else { continue };
            let nodes = placement.order.iter().filter(|n| placement.of_node[**n] == partition);
            let tasks = nodes.filter_map(|node| tasks[*node].take()).collect();
            self.threads.rename(slot, &placement.partitions[partition].name);
            stopped.assign(slot, NewTasks::Work(self.role(placement, partition), tasks));
        }
        blocks
    }

    pub(super) fn role(&self, placement: &Placement, partition: usize) -> Role {
        let plan = &placement.partitions[partition];
        Role {
            name: plan.name.clone(),
            cpu: plan.cpu,
            wait: plan.wait.into(),
            counters: self.counters.partition_counters(partition),
            timed: !self.shape.untimed,
            batch_bytes: self.plan.buffers.batch_bytes(),
        }
    }

    fn explain_absence(&self, absent: &Absent, limit: Duration) -> MoveError {
        let Absent::Late(slot) = absent else { return MoveError::Ended };
        let partition = self.threads.partition(*slot).unwrap_or_default().to_owned();
        let limit_ms = u64::try_from(limit.as_millis()).unwrap_or(u64::MAX);
        match self.counters.at_work(&partition) {
            Some(block) => MoveError::Busy { block: block.to_owned(), partition, limit_ms },
            None => MoveError::Late { partition, limit_ms },
        }
    }
}
