//! Runs a graph by its plan: one named thread per partition, rings on every connection.
//!
//! **A partition** holds its blocks in the order that items pass. Its thread sweeps over them,
//! calling each that can work, until a whole sweep moves nothing; so a batch passes every block
//! while it is hot in the cache. Then it waits until a partition on the other side of one of its
//! rings wakes it.
//!
//! **The end** comes by itself when every block has finished, after [`Stopper::stop`] (sources
//! finish, the rest drains), or at once after an error or panic in a block. Every thread is joined
//! in each case.

mod all_stopped;
mod assignment;
mod clock;
mod control;
mod costs;
mod error;
mod fused_chain;
mod handover;
mod inbox;
mod mailboxes;
mod partition;
mod placement;
mod repartition;
mod sampling;
mod scene;
#[cfg(test)]
mod sim;
mod stats;
mod sync;
mod task;
mod threads;
mod wiring;

pub use control::Stopper;
pub use error::{MoveError, RunError};
pub use repartition::Moved;
pub use stats::{BlockStats, MessageStats, MetricValue, PartitionStats, Snapshot};

use crate::graph::{Graph, GraphError};
use crate::message::Wake;
use crate::observe::{Meters, WatchdogState};
use crate::plan::Plan;
use control::RunControl;
use inbox::Mailboxes;
use millstream_cpu::CpuSet;
use millstream_ring::Padded;
use placement::Placement;
use stats::RunCounters;
use std::sync::Arc;
use std::time::{Duration, Instant};
use sync::Waiter;
use task::BlockTask;
use threads::Threads;

impl Graph {
    /// Starts every partition on its own thread.
    ///
    /// # Errors
    /// [`GraphError`] when the graph is incomplete, the plan does not fit, or memory or threads are
    /// refused. No thread runs then.
    pub fn start(mut self, plan: &Plan) -> Result<RunningGraph, GraphError> {
        self.check()?;
        let placement = plan.place(&self, &allowed_cpus())?;
        wiring::open_rings(&mut self, &placement, &plan.buffers)?;

        // As many as there can ever be threads, whatever the plan becomes.
        let slots = self.nodes.len().max(placement.partitions.len());
        let control = Arc::new(RunControl::new(slots, &placement.of_node));
        let wake: Wake = Arc::new({
            let control = Arc::clone(&control);
            move |node| control.wake(node)
        });
        let (mailboxes, inboxes) = Mailboxes::open(&mut self, wake);
        let mut meters = match &plan.latency {
            Some(latency) => Meters::new(latency, &self, &placement.order)?,
            None => Meters::none(&self),
        };
        self.wakes = std::mem::take(&mut meters.wakes);
        let mut counters = RunCounters::new(&mut self, &placement);
        counters.latency = meters.board;
        let blocks = self.take_blocks();
        // Dropping it on an early return ends the threads started so far.
        let mut running = RunningGraph {
            slot_of_node: placement.of_node.clone(),
            threads: Threads::new(&control, slots),
            shape: self,
            plan: Plan { partitions: placement.partitions.clone(), ..plan.clone() },
            placement: placement.clone(),
            control,
            counters,
            mailboxes,
            watch: WatchdogState::default(),
        };
        let meters = meters.marks.into_iter().zip(meters.budgets);
        let parts = blocks.into_iter().zip(inboxes).zip(meters).enumerate();
        let tasks = parts.map(|(node, ((block, inbox), (marks, budget)))| {
            let name = running.shape.nodes[node].name.clone();
            let counters = running.counters.block_counters(node);
            let task = BlockTask::new(node, name, block, counters, running.neighbours(node));
            Some(task.with_inbox(inbox).with_meters(marks, budget))
        });
        let mut tasks: Vec<Option<BlockTask>> = tasks.collect();
        for (index, partition) in placement.partitions.iter().enumerate() {
            let nodes = placement.order.iter().filter(|node| placement.of_node[**node] == index);
            let tasks = nodes.map(|node| tasks[*node].take().expect("placed once")).collect();
            let role = running.role(&placement, index);
            running.threads.start(index, role, tasks).map_err(|source| GraphError::Thread {
                partition: partition.name.clone(),
                source,
            })?;
        }
        Ok(running)
    }

    /// Runs the graph on threads of its own and waits for its end.
    ///
    /// # Errors
    /// [`RunError`]: the graph could not start, or a block failed.
    pub fn run(self, plan: &Plan) -> Result<Snapshot, RunError> {
        self.start(plan)?.wait()
    }
}

fn allowed_cpus() -> CpuSet {
    // The query fails only on a machine with more than 1024 CPUs; then any number is allowed.
    millstream_cpu::thread::allowed_cpus().unwrap_or_else(|_| (0..1024).collect())
}

/// The interval at which an abandoned graph is polled.
const ABANDON_STEP: Duration = Duration::from_millis(5);

/// A running graph. Dropping it aborts the graph and joins its threads.
pub struct RunningGraph {
    /// The graph without its blocks.
    shape: Graph,
    plan: Plan,
    placement: Placement,
    /// The thread of each block.
    slot_of_node: Vec<usize>,
    threads: Threads,
    control: Arc<RunControl>,
    counters: RunCounters,
    mailboxes: Mailboxes,
    watch: WatchdogState,
}

impl RunningGraph {
    /// Returns a handle to stop the graph from any thread.
    #[must_use]
    pub fn stopper(&self) -> Stopper {
        Stopper::new(&self.control)
    }

    /// Returns the counters of every block and partition now. Reading does not disturb the threads.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        self.full_snapshot()
    }

    /// Whether every thread has ended.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.threads.is_finished()
    }

    /// Waits for the end and returns the last counters.
    ///
    /// # Errors
    /// [`RunError`]: the first block that failed or panicked.
    pub fn wait(mut self) -> Result<Snapshot, RunError> {
        self.threads.join_all();
        match self.control.take_error() {
            Some(error) => Err(error),
            None => Ok(self.full_snapshot()),
        }
    }

    /// Abandons a graph whose blocks may not return: aborts it, waits for `limit`, and leaves the
    /// threads that have not ended by then, with their blocks. For a program that is about to end,
    /// or that prefers losing a thread to waiting for ever.
    pub fn abandon(mut self, limit: Duration) {
        self.control.cancel();
        let begin = Instant::now();
        while !self.is_finished() && begin.elapsed() < limit {
            std::thread::sleep(ABANDON_STEP);
        }
        self.threads.leave_behind();
    }

    /// Returns the waiters of the threads at the other ends of a block's rings, except its own.
    fn neighbours(&self, node: usize) -> Vec<Arc<Padded<Waiter>>> {
        let slots = wiring::neighbours(&self.shape, &self.slot_of_node, node);
        slots.into_iter().map(|slot| self.control.waiter(slot)).collect()
    }
}

impl Drop for RunningGraph {
    fn drop(&mut self) {
        self.control.cancel();
        self.threads.join_all();
    }
}
