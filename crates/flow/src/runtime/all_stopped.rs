//! The caller's side of the [safe point](super::handover).

use super::control::RunControl;
use super::handover::{NewTasks, ThreadSlot};
use super::sync::now;
use super::task::BlockTask;
use std::time::Instant;

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
