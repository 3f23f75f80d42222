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
    /// This slot's thread did not stop in time.
    Late(usize),
}

impl<'a> AllStopped<'a> {
    /// Requests every thread to stop and waits for all, until `deadline`.
    pub(super) fn gather(control: &'a RunControl, deadline: Instant) -> Result<Self, Absent> {
        let handover = control.handover();
        handover.lock().open = true;
        // From here on, dropping it abandons the handover.
        let stopped = Self { control };
        control.raise_barrier();
        let mut state = handover.lock();
        loop {
            // A thread that has not yet taken the tasks of the last handover will stop too.
            let working =
                |slot: &ThreadSlot| matches!(slot, ThreadSlot::Working | ThreadSlot::Assigned(_));
            let vacant = |slot: &ThreadSlot| matches!(slot, ThreadSlot::Vacant);
            if control.is_aborted() || state.slots.iter().all(vacant) {
                return Err(Absent::Ended);
            }
            let Some(absent) = state.slots.iter().position(working) else { break };
            let left = deadline.saturating_duration_since(now());
            if left.is_zero() {
                return Err(Absent::Late(absent));
            }
            handover.arrived.wait_for(&mut state, left);
        }
        drop(state);
        Ok(stopped)
    }

    /// Returns the slots whose threads wait here.
    pub(super) fn present(&self) -> Vec<usize> {
        let state = self.control.handover().lock();
        let present = |(index, slot): (usize, &ThreadSlot)| match slot {
            ThreadSlot::Waiting(_) => Some(index),
            _ => None,
        };
        state.slots.iter().enumerate().filter_map(present).collect()
    }

    /// Calls `look` with every block that was handed in.
    pub(super) fn inspect(&self, mut look: impl FnMut(&mut BlockTask)) {
        let mut state = self.control.handover().lock();
        for slot in &mut state.slots {
            if let ThreadSlot::Waiting(tasks) = slot {
                tasks.iter_mut().for_each(&mut look);
            }
        }
    }

    /// Takes every block that was handed in. After this the handover must be completed with
    /// [`assign`](Self::assign).
    pub(super) fn collect(&self) -> Vec<BlockTask> {
        let mut state = self.control.handover().lock();
        let waiting = state.slots.iter_mut().filter_map(|slot| match slot {
            ThreadSlot::Waiting(tasks) => Some(std::mem::take(tasks)),
            _ => None,
        });
        waiting.flatten().collect()
    }

    /// Assigns its tasks to one thread.
    pub(super) fn assign(&self, slot: usize, new_tasks: NewTasks) {
        let handover = self.control.handover();
        handover.lock().slots[slot] = ThreadSlot::Assigned(new_tasks);
        handover.assigned.notify_all();
    }
}

impl Drop for AllStopped<'_> {
    fn drop(&mut self) {
        self.control.lower_barrier();
        let handover = self.control.handover();
        handover.lock().open = false;
        handover.assigned.notify_all();
    }
}
