//! The threads of a run, by slot.

use super::clock::Clock;
use super::control::RunControl;
use super::error::{RunError, panic_message};
use super::handover::Role;
use super::partition::PartitionThread;
use super::sampling::Sampling;
use super::sync::{self, now};
use super::task::BlockTask;
use std::io;
use std::sync::Arc;

/// One thread for each taken slot.
pub(super) struct Threads {
    control: Arc<RunControl>,
    threads: Vec<Option<Thread>>,
}

struct Thread {
    /// The partition that it runs now.
    partition: String,
    handle: sync::Thread,
}

impl Threads {
    pub(super) fn new(control: &Arc<RunControl>, slots: usize) -> Self {
        let threads = (0..slots).map(|_| None).collect();
        Self { control: Arc::clone(control), threads }
    }

    /// Starts a thread; an earlier thread of the slot is joined first. A thread without `tasks`
    /// begins at the safe point.
    pub(super) fn start(
        &mut self,
        slot: usize,
        role: Role,
        tasks: Vec<BlockTask>,
    ) -> io::Result<()> {
        self.join(slot);
        let partition = role.name.clone();
        let (control, waiter) = (Arc::clone(&self.control), self.control.waiter(slot));
        let handover = self.control.handover();
        handover.take_slot(slot);
        let sampling = Sampling::new(role.timed);
        let clock = Clock::new(now());
        let (chains, buffers) = (Vec::new(), Vec::new());
        let thread = PartitionThread {
            slot,
            role,
            tasks,
            chains,
            buffers,
            waiter,
            control,
            sampling,
            clock,
        };
        let handle = thread.spawn().inspect_err(|_| handover.leave(slot))?;
        self.threads[slot] = Some(Thread { partition, handle });
        Ok(())
    }

    /// Returns the partition that the thread of `slot` runs, if there is a thread.
    pub(super) fn partition(&self, slot: usize) -> Option<&str> {
        self.threads[slot].as_ref().map(|thread| thread.partition.as_str())
    }

    /// Sets the partition that the thread of `slot` runs now.
    pub(super) fn rename(&mut self, slot: usize, partition: &str) {
        if let Some(thread) = &mut self.threads[slot] {
            partition.clone_into(&mut thread.partition);
        }
    }

    /// Whether every thread has ended.
    pub(super) fn is_finished(&self) -> bool {
        self.threads.iter().flatten().all(|thread| thread.handle.is_finished())
    }

    /// Waits for the thread of `slot` to end.
    pub(super) fn join(&mut self, slot: usize) {
        let Some(Thread { partition, handle }) = self.threads[slot].take() else { return };
        if let Err(panic) = handle.join() {
            let message = panic_message(&*panic);
            self.control.abort(RunError::PartitionPanic { partition, message });
        }
    }

    /// Joins the threads that have ended, and never waits for the others.
    pub(super) fn leave_behind(&mut self) {
        for thread in &mut self.threads {
            thread.take_if(|thread| !thread.handle.is_finished());
        }
        self.join_all();
    }

    /// Waits for every thread to end.
    pub(super) fn join_all(&mut self) {
        (0..self.threads.len()).for_each(|slot| self.join(slot));
    }
}
