//! The safe point: where partition threads hand their blocks in between two sweeps, and take
//! the ones that are dealt to them.
//!
//! ```text
//!   thread   sweep ─ sweep ─ visit ······ waits ······ deal taken ─ sweep
//!   asker         gather ──────────▶│ all are in │ deal ─▶│
//! ```
//!
//! Whoever asks opens the meeting and raises a flag; threads look at it once in a sweep, so a
//! running graph pays one relaxed load. Behind the flag everything is under a mutex: it is the
//! mutex that says whether there is a meeting, the flag only sends threads to look. A meeting
//! that is given up lets every thread take its own blocks back.

use super::control::RunControl;
use super::partition::Role;
use super::sync::{Condvar, now, point};
use super::task::BlockTask;
use millstream_ring::Lock;
use parking_lot::MutexGuard;
use std::time::Instant;

/// Where the threads and the one who asks meet.
#[derive(Default)]
pub(super) struct Handover {
    state: Lock<State>,
    /// A thread has come, or has ended.
    arrived: Condvar,
    /// There is something to take.
    dealt: Condvar,
}

#[derive(Default)]
struct State {
    open: bool,
    seats: Vec<ThreadSlot>,
}

/// One thread, as the exchange sees it.
#[derive(Default)]
enum ThreadSlot {
    /// No thread.
    #[default]
    Vacant,
    /// A thread is at work.
    Working,
    /// A thread has handed its blocks in and waits.
    Waiting(Vec<BlockTask>),
    /// Something lies here to be taken.
    Dealt(NewTasks),
}

/// What a thread gets.
pub(super) enum NewTasks {
    /// Another partition with these blocks.
    Work(Role, Vec<BlockTask>),
    /// Nothing: the thread is to end.
    Dismissed,
}

/// What comes of a visit.
pub(super) enum StopResult {
    /// There is no meeting, or it was given up: the blocks that were handed in.
    Same(Vec<BlockTask>),
    /// It took place.
    Dealt(NewTasks),
}

impl Handover {
    /// With a number of seats, all vacant.
    pub(super) fn new(seats: usize) -> Self {
        let seats = (0..seats).map(|_| ThreadSlot::Vacant).collect();
        Self { state: Lock::new(State { open: false, seats }), ..Self::default() }
    }

    /// Says that a thread is about to be started for `seat`.
    pub(super) fn take_seat(&self, seat: usize) {
        self.lock().seats[seat] = ThreadSlot::Working;
    }

    /// Says that the thread of `seat` has ended, or never began.
    pub(super) fn leave(&self, seat: usize) {
        let left = std::mem::take(&mut self.lock().seats[seat]);
        self.arrived.notify_all();
        // Behind the lock: it may hold blocks, whose ends may take time.
        drop(left);
    }

    /// Hands `tasks` in and waits for what is dealt. Without a meeting it returns at once.
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

/// Every thread of a run, waiting. Dropping it sends them back to work with what they had.
pub(super) struct AllStopped<'a> {
    control: &'a RunControl,
}

/// Why not every thread came.
#[derive(Debug, Eq, PartialEq)]
pub(super) enum Absent {
    /// The graph has ended, or has failed meanwhile.
    Ended,
    /// This seat's thread did not come in time.
    Late(usize),
}

impl<'a> AllStopped<'a> {
    /// Calls every thread and waits for all, until `deadline`.
    pub(super) fn gather(control: &'a RunControl, deadline: Instant) -> Result<Self, Absent> {
        let exchange = control.exchange();
        exchange.lock().open = true;
        // From here on, dropping it gives the meeting up.
        let meeting = Self { control };
        control.call();
        let mut state = exchange.lock();
        loop {
            // One that has not yet taken what the last meeting dealt will come too.
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

    /// The seats whose threads wait here.
    pub(super) fn present(&self) -> Vec<usize> {
        let state = self.control.exchange().lock();
        let present = |(index, seat): (usize, &ThreadSlot)| match seat {
            ThreadSlot::Waiting(_) => Some(index),
            _ => None,
        };
        state.seats.iter().enumerate().filter_map(present).collect()
    }

    /// Looks at every block that was handed in.
    pub(super) fn inspect(&self, mut look: impl FnMut(&mut BlockTask)) {
        let mut state = self.control.exchange().lock();
        for seat in &mut state.seats {
            if let ThreadSlot::Waiting(tasks) = seat {
                tasks.iter_mut().for_each(&mut look);
            }
        }
    }

    /// Takes every block that was handed in. From here on the meeting must be brought to its
    /// end with [`deal`](Self::assign).
    pub(super) fn collect(&self) -> Vec<BlockTask> {
        let mut state = self.control.exchange().lock();
        let waiting = state.seats.iter_mut().filter_map(|seat| match seat {
            ThreadSlot::Waiting(tasks) => Some(std::mem::take(tasks)),
            _ => None,
        });
        waiting.flatten().collect()
    }

    /// Gives one thread what it is to do.
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
