//! A partition's thread: sweep until no item moves, then wait.

use super::clock::Clock;
use super::control::RunControl;
use super::error::{RunError, panic_message};
use super::fused_chain::{ChainAction, FusedChain};
use super::handover::{NewTasks, Role, StopResult};
use super::sampling::Sampling;
use super::sync::{self, Waiter, now};
use super::task::BlockTask;
use crate::block::{BlockError, Context};
use crate::lane::BatchMemory;
use millstream_cpu::subnormals::flush_subnormals;
use millstream_ring::{Padded, Wait};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

/// The longest time that all blocks of a partition together may block in one sweep, when no block
/// can work.
const MAY_BLOCK: Duration = Duration::from_millis(5);

/// Rounds in which the blocks of a chain may drain the rings between them.
const DRAIN_ROUNDS: usize = 4;

/// Everything a partition's thread owns.
pub(super) struct PartitionThread {
    /// Its place in the handover and among the waiters.
    pub(super) slot: usize,
    pub(super) role: Role,
    /// In the order that items pass. A thread that starts without any asks the handover.
    pub(super) tasks: Vec<BlockTask>,
    /// The same tasks, grouped into chains.
    pub(super) chains: Vec<FusedChain>,
    /// The fused buffers of the chains.
    pub(super) buffers: Vec<BatchMemory>,
    pub(super) waiter: Arc<Padded<Waiter>>,
    pub(super) control: Arc<RunControl>,
    pub(super) sampling: Sampling,
    pub(super) clock: Clock,
}

impl PartitionThread {
    pub(super) fn spawn(self) -> io::Result<sync::Thread> {
        sync::spawn(self.role.name.clone(), move || {
            flush_subnormals();
            // Declared before the partition, hence dropped after its blocks.
            let alarm = PanicGuard { control: Arc::clone(&self.control), slot: self.slot };
            let mut partition = self;
            if let Err(error) = partition.run() {
                partition.control.abort(error);
            }
            partition.role.counters.in_call.set(0);
            drop(partition);
            drop(alarm);
        })
    }

    fn run(&mut self) -> Result<(), RunError> {
        if self.tasks.is_empty() {
            // Started for a move, or for a partition without blocks.
            if !self.stop_at_safe_point()? {
                return Ok(());
            }
        } else {
            self.settle_in()?;
            self.guard(Self::start)?;
            self.form_chains();
        }
        let mut context = Context::at(now());
        self.clock = Clock::new(context.now);
        while !self.control.is_aborted() {
            if self.control.is_barrier_up() && !self.stop_at_safe_point()? {
                break;
            }
            context.stopping = self.control.is_stopping();
            let moved = self.guard(|partition| partition.sweep(&mut context))?;
            if moved {
                context.may_block = Duration::ZERO;
            } else if self.tasks.iter().all(BlockTask::is_finished) {
                break;
            } else {
                self.pause(&mut context);
            }
        }
        Ok(())
    }

    /// Hands in the blocks at the safe point and takes the result. Returns false when the thread is
    /// to end.
    fn stop_at_safe_point(&mut self) -> Result<bool, RunError> {
        self.role.counters.in_call.set(0);
        self.chains.iter_mut().for_each(|chain| chain.split(&mut self.tasks));
        // Blocks that have finished are dropped here, on their thread.
        self.tasks.retain(|task| !task.is_finished());
        match self.control.handover().stop_at_safe_point(self.slot, std::mem::take(&mut self.tasks))
        {
            StopResult::Same(tasks) => self.tasks = tasks,
            StopResult::Assigned(NewTasks::Dismissed) => {}
            StopResult::Assigned(NewTasks::Work(role, tasks)) => {
                let before = std::mem::replace(&mut self.role, role);
                self.tasks = tasks;
                self.sampling = Sampling::new(self.role.timed);
                self.change(&before);
            }
        }
        self.form_chains();
        Ok(!self.tasks.is_empty())
    }

    fn form_chains(&mut self) {
        (self.chains, self.buffers) = FusedChain::form(&mut self.tasks, self.role.batch_bytes);
    }

    /// Changes the thread to another partition.
    fn change(&self, before: &Role) {
        let Role { name, cpu, .. } = &self.role;
        if *name != before.name && !cfg!(miri) {
            // Only for people who read `top`. Miri has no prctl(2).
            let _ = millstream_cpu::thread::name_current_thread(name);
        }
        if cpu.is_none() && before.cpu.is_some() {
            // If the kernel refuses, the thread stays where it is: slower at worst.
            let _ = millstream_cpu::thread::unpin_current_thread();
        }
        // As above: a running graph does not end because a CPU was taken away meanwhile. The
        // counters show that the thread is not pinned.
        let _ = self.settle_in();
    }

    /// Publishes the thread's number, and pins the thread to its CPU.
    fn settle_in(&self) -> Result<(), RunError> {
        let tid = rustix::thread::gettid().as_raw_nonzero().get();
        self.role.counters.tid.set(u64::from(tid.unsigned_abs()));
        let Some(cpu) = self.role.cpu else { return Ok(()) };
        let failed = |source| RunError::Pin { partition: self.role.name.clone(), source };
        let pinned = millstream_cpu::thread::pin_current_thread(cpu).map_err(failed);
        self.role.counters.unpinned.set(u64::from(pinned.is_err()));
        pinned
    }

    /// Runs a part of the blocks' work and turns a block's error or panic into the run's.
    fn guard<T>(
        &mut self,
        run: impl FnOnce(&mut Self) -> Result<T, BlockError>,
    ) -> Result<T, RunError> {
        // After a panic the blocks are only dropped, so a broken state is harmless.
        let outcome = catch_unwind(AssertUnwindSafe(|| run(self)));
        let in_call = self.role.counters.in_call.get();
        let at_work = || self.tasks.iter().find(|task| task.call_number() == in_call);
        let block = || at_work().map(|task| task.name.clone()).unwrap_or_default();
        match outcome {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(source)) => Err(RunError::Block { block: block(), source }),
            Err(panic) => {
                Err(RunError::BlockPanic { block: block(), message: panic_message(&*panic) })
            }
        }
    }

    fn start(&mut self) -> Result<(), BlockError> {
        for task in &mut self.tasks {
            self.role.counters.in_call.set(task.call_number());
            task.start()?;
        }
        Ok(())
    }

    /// Calls every block that can work once. Returns whether anything changed.
    fn sweep(&mut self, context: &mut Context) -> Result<bool, BlockError> {
        self.role.counters.sweeps.add(1);
        let may_wait = context.may_block > Duration::ZERO;
        let weight = self.sampling.weight(may_wait);
        if self.clock.is_due() || weight.is_some() || may_wait {
            context.now = now();
            self.clock.looked(context.now);
        }
        match weight {
            None => self.sweep_by(context, None),
            Some(_) => {
                let (start, calls) = (context.now, self.calls());
                let moved = self.sweep_by(context, weight)?;
                let took = context.now.saturating_duration_since(start);
                if !may_wait {
                    self.sampling.learn(took, self.calls() - calls);
                }
                Ok(moved)
            }
        }
    }

    fn sweep_by(&mut self, context: &mut Context, weight: Option<u32>) -> Result<bool, BlockError> {
        let Self { chains, buffers, tasks, role, clock, .. } = self;
        let in_call = &role.counters.in_call;
        let mut moved = false;
        let alone = chains.len() == 1;
        for chain in chains {
            match chain.next_action(tasks, context.stopping) {
                ChainAction::Run(items) => {
                    let rounds = if alone || chain.is_closed() { clock.rounds() } else { 1 };
                    let batch = (items, rounds);
                    match weight {
                        None => chain.run(tasks, buffers, batch, in_call),
                        Some(weight) => {
                            chain.run_timed(tasks, buffers, batch, in_call, (context, weight));
                        }
                    }
                    moved = true;
                }
                ChainAction::Wait => {}
                ChainAction::CallEach => {
                    let mut members = chain.members();
                    for _ in 0..DRAIN_ROUNDS {
                        let mut some = false;
                        for task in &mut tasks[members] {
                            in_call.set(task.call_number());
                            some |= task.call(context, weight)?;
                            if some {
                                // Blocks can work: no call may wait.
                                context.may_block = Duration::ZERO;
                            }
                        }
                        moved |= some;
                        // Items left inside keep the blocks from running as one.
                        if !some || !chain.holds_items(tasks) {
                            break;
                        }
                        members = chain.members().start + 1..chain.members().end;
                    }
                    chain.fuse(tasks);
                }
            }
            if moved {
                context.may_block = Duration::ZERO;
            }
        }
        Ok(moved)
    }

    fn calls(&self) -> u64 {
        self.tasks.iter().map(BlockTask::calls).sum()
    }

    /// Waits for a neighbour's wake-up or the next time that a block asked for.
    fn pause(&mut self, context: &mut Context) {
        let open = || self.tasks.iter().filter(|task| !task.is_finished());
        let next = open().filter_map(BlockTask::wake_at).min();
        let timeout = next.map(|at| at.saturating_duration_since(context.now));
        if timeout == Some(Duration::ZERO) {
            // Some blocks want to be called at once: they do the waiting, one after the other.
            let may_wait = self.role.wait != Wait::Spin && !self.waiter.take();
            let due = open().filter_map(BlockTask::wake_at).filter(|at| *at <= context.now).count();
            let each = MAY_BLOCK / u32::try_from(due).unwrap_or(u32::MAX).max(1);
            context.may_block = if may_wait { each } else { Duration::ZERO };
        } else {
            context.may_block = Duration::ZERO;
            self.role.counters.waits.add(1);
            self.role.counters.in_call.set(0);
            self.waiter.wait(self.role.wait, timeout);
            context.now = now();
            self.clock.waited(context.now);
        }
    }
}

/// Leaves the handover when the thread ends, and ends the other partitions if it panics outside of
/// a block's work (in a block's drop, say): their rings close, but nothing else would wake them.
struct PanicGuard {
    control: Arc<RunControl>,
    slot: usize,
}

impl Drop for PanicGuard {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.control.cancel();
        }
        self.control.handover().leave(self.slot);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blocks::{NullSink, NullSource};
    use crate::plan::{Plan, WaitMode};
    use crate::runtime::all_stopped::AllStopped;
    use crate::runtime::stats::PartitionCounters;
    use crate::{Graph, RunningGraph};
    use std::time::Instant;

    /// Gives the only partition a role on a CPU that the kernel refuses.
    fn move_to_a_cpu_that_is_gone(running: &RunningGraph) -> Arc<Padded<PartitionCounters>> {
        let deadline = Instant::now() + Duration::from_secs(60);
        let stopped = AllStopped::gather(&running.control, deadline).unwrap_or_else(|absent| {
            panic!("{absent:?}");
        });
        let mut role = running.role(&running.placement, 0);
        role.cpu = Some(1023);
        let counters = Arc::clone(&role.counters);
        stopped.assign(0, NewTasks::Work(role, stopped.collect()));
        counters
    }

    #[test]
    fn a_cpu_that_is_gone_does_not_end_a_graph_that_was_moved() {
        let mut graph = Graph::new();
        graph.add("source", NullSource::<u8>::new()).unwrap();
        graph.add("sink", NullSink::<u8>::new()).unwrap();
        graph.chain(&["source", "sink"]).unwrap();
        let plan = Plan::single(&graph, WaitMode::Park);
        let running = graph.start(&plan).unwrap();
        let counters = move_to_a_cpu_that_is_gone(&running);
        while counters.unpinned.get() == 0 {
            assert!(!running.is_finished(), "{:?}", running.wait());
            std::thread::sleep(Duration::from_millis(1));
        }
        running.stopper().stop();
        running.wait().unwrap();
    }
}
