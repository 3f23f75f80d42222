//! A partition's thread: sweep until nothing moves, then wait.

use super::control::Control;
use super::error::{RunError, panic_message};
use super::sampling::Sampling;
use super::stats::PartitionCounters;
use super::task::Task;
use crate::block::{BlockError, Context};
use millstream_ring::{Padded, Wait, Waiter};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
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
    pub(super) sampling: Sampling,
    /// The block at work, to be named when it fails.
    pub(super) current: usize,
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
        self.guard(Self::start)?;
        let mut context = Context::at(Instant::now());
        while !self.control.is_aborted() {
            context.stopping = self.control.is_stopping();
            let moved = self.guard(|partition| partition.sweep(&mut context))?;
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

    /// Runs a piece of the blocks' work and turns the error or panic of one into the run's.
    fn guard<T>(
        &mut self,
        run: impl FnOnce(&mut Self) -> Result<T, BlockError>,
    ) -> Result<T, RunError> {
        // After a panic the blocks are only dropped, so a broken state harms nobody.
        let outcome = catch_unwind(AssertUnwindSafe(|| run(self)));
        let block = || self.tasks[self.current].name.clone();
        match outcome {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(source)) => Err(RunError::Block { block: block(), source }),
            Err(panic) => {
                Err(RunError::BlockPanic { block: block(), message: panic_message(&*panic) })
            }
        }
    }

    fn start(&mut self) -> Result<(), BlockError> {
        for (index, task) in self.tasks.iter_mut().enumerate() {
            self.current = index;
            task.start()?;
        }
        Ok(())
    }

    /// Gives every block one chance. Says whether anything changed.
    fn sweep(&mut self, context: &mut Context) -> Result<bool, BlockError> {
        self.counters.sweeps.add(1);
        context.now = Instant::now();
        let may_wait = context.may_block > Duration::ZERO;
        match self.sampling.weight(may_wait) {
            None => self.sweep_by(context, Task::step),
            Some(weight) => {
                let (start, calls) = (context.now, self.calls());
                let step =
                    |task: &mut Task, context: &mut Context| task.timed_step(context, weight);
                let moved = self.sweep_by(context, step)?;
                let took = context.now.saturating_duration_since(start);
                if !may_wait {
                    self.sampling.learn(took, self.calls() - calls);
                }
                Ok(moved)
            }
        }
    }

    fn sweep_by(
        &mut self,
        context: &mut Context,
        step: impl Fn(&mut Task, &mut Context) -> Result<bool, BlockError>,
    ) -> Result<bool, BlockError> {
        let mut moved = false;
        for (index, task) in self.tasks.iter_mut().enumerate() {
            self.current = index;
            if step(task, context)? {
                moved = true;
                // There is work to do: nobody may hold it up.
                context.may_block = Duration::ZERO;
            }
        }
        Ok(moved)
    }

    fn calls(&self) -> u64 {
        self.tasks.iter().map(Task::calls).sum()
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
