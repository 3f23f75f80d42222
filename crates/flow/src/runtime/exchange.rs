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

use super::control::Control;
use super::partition::Role;
use super::sync::{Condvar, now, point};
use super::task::Task;
use millstream_ring::Lock;
use parking_lot::MutexGuard;
use std::time::Instant;

/// Where the threads and the one who asks meet.
#[derive(Default)]
pub(super) struct Exchange {
    state: Lock<State>,
    /// A thread has come, or has ended.
    arrived: Condvar,
    /// There is something to take.
    dealt: Condvar,
}

#[derive(Default)]
struct State {
    open: bool,
    seats: Vec<Seat>,
}

/// One thread, as the exchange sees it.
#[derive(Default)]
enum Seat {
    /// No thread.
    #[default]
    Vacant,
    /// A thread is at work.
    Working,
    /// A thread has handed its blocks in and waits.
    Waiting(Vec<Task>),
    /// Something lies here to be taken.
    Dealt(Deal),
}

/// What a thread gets.
pub(super) enum Deal {
    /// Another partition with these blocks.
    Work(Role, Vec<Task>),
    /// Nothing: the thread is to end.
    Dismissed,
}

/// What comes of a visit.
pub(super) enum Visit {
    /// There is no meeting, or it was given up: the blocks that were handed in.
    Same(Vec<Task>),
    /// It took place.
    Dealt(Deal),
}

impl Exchange {
    /// With a number of seats, all vacant.
    pub(super) fn new(seats: usize) -> Self {
        let seats = (0..seats).map(|_| Seat::Vacant).collect();
        Self { state: Lock::new(State { open: false, seats }), ..Self::default() }
    }

    /// Says that a thread is about to be started for `seat`.
    pub(super) fn take_seat(&self, seat: usize) {
        self.lock().seats[seat] = Seat::Working;
    }

    /// Says that the thread of `seat` has ended, or never began.
    pub(super) fn leave(&self, seat: usize) {
        let left = std::mem::take(&mut self.lock().seats[seat]);
        self.arrived.notify_all();
        // Behind the lock: it may hold blocks, whose ends may take time.
        drop(left);
    }

    /// Hands `tasks` in and waits for what is dealt. Without a meeting it returns at once.
    pub(super) fn visit(&self, seat: usize, tasks: Vec<Task>) -> Visit {
        let mut state = self.lock();
        if let Seat::Working = state.seats[seat] {
            if !state.open {
                return Visit::Same(tasks);
            }
            state.seats[seat] = Seat::Waiting(tasks);
            self.arrived.notify_all();
        }
        loop {
            let open = state.open;
            match std::mem::replace(&mut state.seats[seat], Seat::Working) {
                Seat::Dealt(deal) => return Visit::Dealt(deal),
                Seat::Waiting(tasks) if !open => return Visit::Same(tasks),
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
pub(super) struct Meeting<'a> {
    control: &'a Control,
}

/// Why not every thread came.
#[derive(Debug, Eq, PartialEq)]
pub(super) enum Absent {
    /// The graph has ended, or has failed meanwhile.
    Ended,
    /// This seat's thread did not come in time.
    Late(usize),
}

impl<'a> Meeting<'a> {
    /// Calls every thread and waits for all, until `deadline`.
    pub(super) fn gather(control: &'a Control, deadline: Instant) -> Result<Self, Absent> {
        let exchange = control.exchange();
        exchange.lock().open = true;
        // From here on, dropping it gives the meeting up.
        let meeting = Self { control };
        control.call();
        let mut state = exchange.lock();
        loop {
            // One that has not yet taken what the last meeting dealt will come too.
            let working = |seat: &Seat| matches!(seat, Seat::Working | Seat::Dealt(_));
            let vacant = |seat: &Seat| matches!(seat, Seat::Vacant);
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
        let present = |(index, seat): (usize, &Seat)| match seat {
            Seat::Waiting(_) => Some(index),
            _ => None,
        };
        state.seats.iter().enumerate().filter_map(present).collect()
    }

    /// Looks at every block that was handed in.
    pub(super) fn inspect(&self, mut look: impl FnMut(&mut Task)) {
        let mut state = self.control.exchange().lock();
        for seat in &mut state.seats {
            if let Seat::Waiting(tasks) = seat {
                tasks.iter_mut().for_each(&mut look);
            }
        }
    }

    /// Takes every block that was handed in. From here on the meeting must be brought to its
    /// end with [`deal`](Self::deal).
    pub(super) fn collect(&self) -> Vec<Task> {
        let mut state = self.control.exchange().lock();
        let waiting = state.seats.iter_mut().filter_map(|seat| match seat {
            Seat::Waiting(tasks) => Some(std::mem::take(tasks)),
            _ => None,
        });
        waiting.flatten().collect()
    }

    /// Gives one thread what it is to do.
    pub(super) fn deal(&self, seat: usize, deal: Deal) {
        let exchange = self.control.exchange();
        exchange.lock().seats[seat] = Seat::Dealt(deal);
        exchange.dealt.notify_all();
    }
}

impl Drop for Meeting<'_> {
    fn drop(&mut self) {
        self.control.dismiss();
        let exchange = self.control.exchange();
        exchange.lock().open = false;
        exchange.dealt.notify_all();
    }
}
