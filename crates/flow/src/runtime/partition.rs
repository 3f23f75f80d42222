//! A partition's thread: sweep until nothing moves, then wait.

use super::control::Control;
use super::error::RunError;
use super::stats::PartitionCounters;
use super::task::Task;
use crate::block::Context;
use millstream_ring::{Padded, Wait, Waiter};
use std::io;
use std::sync::Arc;
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

/// How long a block may block when its partition has nothing else to do.
const MAY_BLOCK: Duration = Duration::from_millis(5);

/// Everything a partition's thread owns.
pub(super) struct PartitionThread {
    pub(super) name: String,
    pub(super) cpu: Option<usize>,
    pub(super) wait: Wait,
    /// In the order that items pass.
    pub(super) tasks: Vec<Task>,
    pub(super) waiter: Arc<Padded<Waiter>>,
    pub(super) control: Arc<Control>,
    pub(super) counters: Arc<Padded<PartitionCounters>>,
}

impl PartitionThread {
    pub(super) fn spawn(self) -> io::Result<JoinHandle<()>> {
        Builder::new().name(self.name.clone()).spawn(move || {
            // Declared before the partition, hence dropped after its blocks.
            let alarm = Alarm(Arc::clone(&self.control));
            let mut partition = self;
            if let Err(error) = partition.run() {
                partition.control.abort(error);
            }
            drop(partition);
            drop(alarm);
        })
    }

    fn run(&mut self) -> Result<(), RunError> {
        if let Some(cpu) = self.cpu {
            millstream_sys::thread::pin_current_thread(cpu)
                .map_err(|source| RunError::Pin { partition: self.name.clone(), source })?;
        }
        for task in &mut self.tasks {
            task.start()?;
        }
        let mut context = Context::at(Instant::now());
        while !self.control.is_aborted() {
            context.stopping = self.control.is_stopping();
            let moved = self.sweep(&mut context)?;
            if moved {
                context.may_block = Duration::ZERO;
            } else if self.tasks.iter().all(Task::is_finished) {
                break;
            } else {
                self.pause(&mut context);
            }
        }
        Ok(())
    }

    /// Gives every block one chance. Says whether anything changed.
    fn sweep(&mut self, context: &mut Context) -> Result<bool, RunError> {
        self.counters.sweeps.add(1);
        let mut moved = false;
        for task in &mut self.tasks {
            if task.step(context)? {
                moved = true;
                // There is work to do: nobody may hold it up.
                context.may_block = Duration::ZERO;
            }
        }
        Ok(moved)
    }

    /// Waits for a neighbour's news or the next time a block asked for.
    fn pause(&mut self, context: &mut Context) {
        let open = self.tasks.iter().filter(|task| !task.is_finished());
        let next = open.filter_map(Task::wake_at).min();
        let timeout = next.map(|at| at.saturating_duration_since(context.now));
        if timeout == Some(Duration::ZERO) {
            // A block wants to be called at once: rather let it do the waiting.
            let may_wait = self.wait != Wait::Spin && !self.waiter.take();
            context.may_block = if may_wait { MAY_BLOCK } else { Duration::ZERO };
        } else {
            context.may_block = Duration::ZERO;
            self.counters.waits.add(1);
            self.waiter.wait(self.wait, timeout);
            context.now = Instant::now();
        }
    }
}

/// Ends the other partitions if this thread panics outside of a block's work (a block whose
/// drop panics, say): their rings close, but nobody would wake them.
struct Alarm(Arc<Control>);

impl Drop for Alarm {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.cancel();
        }
    }
}
