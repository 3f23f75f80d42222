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

use super::control::RunControl;
use super::partition::Role;
use super::sync::{Condvar, now, point};
use super::task::BlockTask;
use millstream_ring::Lock;
use parking_lot::MutexGuard;
use std::time::Instant;

/// The safe point of the threads and the caller.
#[derive(Default)]
pub(super) struct Handover {
    state: Lock<State>,
    /// Signalled when a thread has stopped or has ended.
    arrived: Condvar,
    /// Signalled when tasks have been assigned.
    dealt: Condvar,
}

#[derive(Default)]
struct State {
    open: bool,
    seats: Vec<ThreadSlot>,
}

/// The state of one seat in the handover.
#[derive(Default)]
enum ThreadSlot {
    /// No thread.
    #[default]
    Vacant,
    /// A thread runs.
    Working,
    /// A thread has handed in its blocks and waits.
    Waiting(Vec<BlockTask>),
    /// Tasks are assigned and not taken yet.
    Dealt(NewTasks),
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
    Dealt(NewTasks),
}

impl Handover {
    /// Makes a handover with a number of seats, all vacant.
    pub(super) fn new(seats: usize) -> Self {
        let seats = (0..seats).map(|_| ThreadSlot::Vacant).collect();
        Self { state: Lock::new(State { open: false, seats }), ..Self::default() }
    }

    /// Marks `seat` as taken, before its thread is started.
    pub(super) fn take_seat(&self, seat: usize) {
        self.lock().seats[seat] = ThreadSlot::Working;
    }

    /// Marks `seat` as vacant: its thread has ended, or never started.
    pub(super) fn leave(&self, seat: usize) {
        let left = std::mem::take(&mut self.lock().seats[seat]);
        self.arrived.notify_all();
        // Outside the lock: it may hold blocks, whose drop may take time.
        drop(left);
    }

    /// Hands in `tasks` and waits for the assignment. Without an open handover it returns at once.
    pub(super) fn stop_at_safe_point(&self, seat: usize, tasks: Vec<BlockTask>) -> StopResult {
        let mut state = self.lock();
        if let ThreadSlot::Working = state.seats[seat] {
            if !state.open {
                return StopResult::Same(tasks);
            }
            state.seats[seat] = ThreadSlot::Waiting(tasks);
            self.arrived.notify_all();
        }
        loop {
            let open = state.open;
            match std::mem::replace(&mut state.seats[seat], ThreadSlot::Working) {
                ThreadSlot::Dealt(deal) => return StopResult::Dealt(deal),
                ThreadSlot::Waiting(tasks) if !open => return StopResult::Same(tasks),
                waiting => state.seats[seat] = waiting,
            }
            self.dealt.wait(&mut state);
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        point();
        self.state.lock()
    }
}

/// All threads of a run, waiting. Dropping it sends them back to work with their own blocks.
pub(super) struct AllStopped<'a> {
    control: &'a RunControl,
}

/// The reason why not every thread stopped.
#[derive(Debug, Eq, PartialEq)]
pub(super) enum Absent {
    /// The graph has ended or failed meanwhile.
    Ended,
    /// This seat's thread did not stop in time.
    Late(usize),
}

impl<'a> AllStopped<'a> {
    /// Requests every thread to stop and waits for all, until `deadline`.
    pub(super) fn gather(control: &'a RunControl, deadline: Instant) -> Result<Self, Absent> {
        let exchange = control.exchange();
        exchange.lock().open = true;
        // From here on, dropping it abandons the handover.
        let meeting = Self { control };
        control.call();
        let mut state = exchange.lock();
        loop {
            // A thread that has not yet taken the tasks of the last handover will stop too.
            let working =
                |seat: &ThreadSlot| matches!(seat, ThreadSlot::Working | ThreadSlot::Dealt(_));
            let vacant = |seat: &ThreadSlot| matches!(seat, ThreadSlot::Vacant);
            if control.is_aborted() || state.seats.iter().all(vacant) {
                return Err(Absent::Ended);
            }
            let Some(absent) = state.seats.iter().position(working) else { break };
            let left = deadline.saturating_duration_since(now());
            if left.is_zero() {
                return Err(Absent::Late(absent));
            }
            exchange.arrived.wait_for(&mut state, left);
        }
        drop(state);
        Ok(meeting)
    }

    /// Returns the seats whose threads wait here.
    pub(super) fn present(&self) -> Vec<usize> {
        let state = self.control.exchange().lock();
        let present = |(index, seat): (usize, &ThreadSlot)| match seat {
            ThreadSlot::Waiting(_) => Some(index),
            _ => None,
        };
        state.seats.iter().enumerate().filter_map(present).collect()
    }

    /// Calls `look` with every block that was handed in.
    pub(super) fn inspect(&self, mut look: impl FnMut(&mut BlockTask)) {
        let mut state = self.control.exchange().lock();
        for seat in &mut state.seats {
            if let ThreadSlot::Waiting(tasks) = seat {
                tasks.iter_mut().for_each(&mut look);
            }
        }
    }

    /// Takes every block that was handed in. After this the handover must be completed with
    /// [`assign`](Self::assign).
    pub(super) fn collect(&self) -> Vec<BlockTask> {
        let mut state = self.control.exchange().lock();
        let waiting = state.seats.iter_mut().filter_map(|seat| match seat {
            ThreadSlot::Waiting(tasks) => Some(std::mem::take(tasks)),
            _ => None,
        });
        waiting.flatten().collect()
    }

    /// Assigns its tasks to one thread.
    pub(super) fn assign(&self, seat: usize, deal: NewTasks) {
        let exchange = self.control.exchange();
        exchange.lock().seats[seat] = ThreadSlot::Dealt(deal);
        exchange.dealt.notify_all();
    }
}

impl Drop for AllStopped<'_> {
    fn drop(&mut self) {
        self.control.clear_stop();
        let exchange = self.control.exchange();
        exchange.lock().open = false;
        exchange.dealt.notify_all();
    }
}
