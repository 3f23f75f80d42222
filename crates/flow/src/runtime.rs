//! Runs a graph by its plan: one named thread per partition, rings on every connection.
//!
//! **A partition** holds its blocks in the order that items pass. Its thread sweeps over them,
//! calling each that can work, until a whole sweep moves nothing; so a batch passes every
//! block while it is hot in the cache. Then it waits for news from a partition on the
//! other side of one of its rings.
//!
//! **The end** comes by itself when every block has finished, after [`Stopper::stop`] (sources
//! finish, the rest drains), or at once after an error or panic in a block. Every thread is
//! joined in each case.

mod control;
mod costs;
mod error;
mod partition;
mod sampling;
mod stats;
mod task;
mod wiring;

pub use control::Stopper;
pub use error::RunError;
pub use stats::{BlockStats, MetricValue, PartitionStats, Snapshot};

use crate::graph::{Graph, GraphError};
use crate::plan::Plan;
use control::Control;
use millstream_sys::CpuSet;
use partition::PartitionThread;
use sampling::Sampling;
use stats::Board;
use std::sync::Arc;
use std::thread::JoinHandle;
use task::Task;

impl Graph {
    /// Starts every partition on its own thread.
    ///
    /// # Errors
    /// [`GraphError`] when the graph is incomplete, the plan does not fit, or memory or
    /// threads are refused. Nothing runs then.
    pub fn start(mut self, plan: &Plan) -> Result<Running, GraphError> {
        self.check()?;
        let placement = plan.place(&self, &allowed_cpus())?;
        wiring::open_rings(&mut self, &placement, &plan.buffers)?;

        let control = Arc::new(Control::new(placement.partitions.len()));
        let board = Arc::new(Board::new(&mut self, &placement));
        let neighbours: Vec<_> = (0..self.nodes.len())
            .map(|node| control.waiters(wiring::neighbours(&self, &placement, node)))
            .collect();
        let mut tasks: Vec<Option<Task>> = self
            .nodes
            .into_iter()
            .zip(neighbours)
            .enumerate()
            .map(|(node, (parts, neighbours))| {
                let counters = board.block_counters(node);
                Some(Task::new(parts.name, parts.block, counters, neighbours))
            })
            .collect();

        // Dropping `running` on an early return ends the threads started so far.
        let mut running = Running { threads: Vec::new(), control, board };
        for (index, partition) in placement.partitions.iter().enumerate() {
            let nodes = placement.order.iter().filter(|node| placement.of_node[**node] == index);
            let tasks = nodes.map(|node| tasks[*node].take().expect("placed once")).collect();
            let thread = PartitionThread {
                name: partition.name.clone(),
                cpu: partition.cpu,
                wait: partition.wait.into(),
                tasks,
                waiter: running.control.waiter(index),
                control: Arc::clone(&running.control),
                counters: running.board.partition_counters(index),
                sampling: Sampling::new(true),
                current: 0,
            };
            let handle = thread.spawn().map_err(|source| GraphError::Thread {
                partition: partition.name.clone(),
                source,
            })?;
            running.threads.push((partition.name.clone(), handle));
        }
        Ok(running)
    }

    /// Runs to the end on threads of its own.
    ///
    /// # Errors
    /// [`RunError`]: the graph could not start, or a block failed.
    pub fn run(self, plan: &Plan) -> Result<Snapshot, RunError> {
        self.start(plan)?.wait()
    }
}

fn allowed_cpus() -> CpuSet {
    // Only a machine with more than 1024 CPUs cannot tell; then any number is worth a try.
    millstream_sys::thread::allowed_cpus().unwrap_or_else(|_| (0..1024).collect())
}

/// A graph at work. Dropping it aborts the graph and joins its threads.
pub struct Running {
    threads: Vec<(String, JoinHandle<()>)>,
    control: Arc<Control>,
    board: Arc<Board>,
}

impl Running {
    /// A handle to stop the graph from anywhere.
    #[must_use]
    pub fn stopper(&self) -> Stopper {
        Stopper::new(&self.control)
    }

    /// Every block's and partition's counters now. Reading disturbs nobody.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        self.board.snapshot()
    }

    /// Whether every thread has ended.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.threads.iter().all(|(_, thread)| thread.is_finished())
    }

    /// Waits for the end and gives the last counters.
    ///
    /// # Errors
    /// [`RunError`]: the first block that failed or panicked.
    pub fn wait(mut self) -> Result<Snapshot, RunError> {
        self.join();
        match self.control.take_error() {
            Some(error) => Err(error),
            None => Ok(self.board.snapshot()),
        }
    }

    fn join(&mut self) {
        for (partition, thread) in self.threads.drain(..) {
            if let Err(panic) = thread.join() {
                let message = error::panic_message(&*panic);
                self.control.abort(RunError::PartitionPanic { partition, message });
            }
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.control.cancel();
        self.join();
    }
}
