//! The safe point: partition threads hand in their blocks between two sweeps, and take the blocks
//! that are assigned to them.
//!
//! ```text
//!   thread   sweep ─ sweep ─ stop ······ waits ······ take tasks ─ sweep
//!   caller        gather ──────────▶│ all stopped │ assign ─▶│
//! ```
//!
//! The caller opens the handover and raises a flag; threads read it once in a sweep, so a running
//! graph pays one relaxed load. Everything else is under a mutex, which decides whether a handover
//! is open; the flag only sends threads there. After a handover that is abandoned every thread
//! takes its own blocks back.

use super::stats::PartitionCounters;
use super::sync::{Condvar, point};
use super::task::BlockTask;
use millstream_ring::{Lock, Padded, Wait};
use parking_lot::MutexGuard;
use std::sync::Arc;

/// The safe point of the threads and the caller.
#[derive(Default)]
pub(super) struct Handover {
    pub(super) state: Lock<State>,
    /// Signalled when a thread has stopped or has ended.
    pub(super) arrived: Condvar,
    /// Signalled when tasks have been assigned.
    pub(super) assigned: Condvar,
}

#[derive(Default)]
pub(super) struct State {
    pub(super) open: bool,
    pub(super) slots: Vec<ThreadSlot>,
}

/// The state of one slot in the handover.
#[derive(Default)]
pub(super) enum ThreadSlot {
    /// No thread.
    #[default]
    Vacant,
    /// A thread runs.
    Working,
    /// A thread has handed in its blocks and waits.
    Waiting(Vec<BlockTask>),
    /// Tasks are assigned and not taken yet.
    Assigned(NewTasks),
}

/// The partition that a thread runs, which may change at a handover.
pub(super) struct Role {
    pub(super) name: String,
    pub(super) cpu: Option<usize>,
    pub(super) wait: Wait,
    pub(super) counters: Arc<Padded<PartitionCounters>>,
    /// Whether the cost model may read the clock.
    pub(super) timed: bool,
    /// The largest batch of a fused chain.
    pub(super) batch_bytes: usize,
}

/// The tasks that a thread gets.
pub(super) enum NewTasks {
    /// Another partition with these blocks.
    Work(Role, Vec<BlockTask>),
    /// None: the thread is to end.
    Dismissed,
}

/// The result of a stop at the safe point.
pub(super) enum StopResult {
    /// No handover is open, or it was abandoned: the blocks that were handed in.
    Same(Vec<BlockTask>),
    /// The handover took place.
    Assigned(NewTasks),
}

impl Handover {
    /// Makes a handover with a number of slots, all vacant.
    pub(super) fn new(slots: usize) -> Self {
        let slots = (0..slots).map(|_| ThreadSlot::Vacant).collect();
        Self { state: Lock::new(State { open: false, slots }), ..Self::default() }
    }

    /// Marks `slot` as taken, before its thread is started.
    pub(super) fn take_slot(&self, slot: usize) {
        self.lock().slots[slot] = ThreadSlot::Working;
    }

    /// Marks `slot` as vacant: its thread has ended, or never started.
    pub(super) fn leave(&self, slot: usize) {
        let left = std::mem::take(&mut self.lock().slots[slot]);
        self.arrived.notify_all();
        // Outside the lock: it may hold blocks, whose drop may take time.
        drop(left);
    }

    /// Hands in `tasks` and waits for the assignment. Without an open handover it returns at once.
    pub(super) fn stop_at_safe_point(&self, slot: usize, tasks: Vec<BlockTask>) -> StopResult {
        let mut state = self.lock();
        if let ThreadSlot::Working = state.slots[slot] {
            if !state.open {
                return StopResult::Same(tasks);
            }
            state.slots[slot] = ThreadSlot::Waiting(tasks);
            self.arrived.notify_all();
        }
        loop {
            let open = state.open;
            match std::mem::replace(&mut state.slots[slot], ThreadSlot::Working) {
                ThreadSlot::Assigned(new_tasks) => return StopResult::Assigned(new_tasks),
                ThreadSlot::Waiting(tasks) if !open => return StopResult::Same(tasks),
                waiting => state.slots[slot] = waiting,
            }
            self.assigned.wait(&mut state);
        }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        point();
        self.state.lock()
    }
}
