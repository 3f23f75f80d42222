//! The CPUs of an I/O thread and of a spinning user: on one CPU each keeps the other from running.
//!
//! Both would spin until the scheduler takes the CPU away milliseconds later, and no data would
//! move until then. So the user checks whether the thread was last seen on the user's own CPU; if
//! so, both yield whenever they find nothing to do.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use millstream_ring::{Wait, Waiter};
use rustix::thread::sched_getcpu;

/// A CPU number that does not exist; the initial values differ, so that they never match.
const NO_CPU: usize = usize::MAX;
const NO_USER: usize = usize::MAX - 1;

/// The interval between two checks of a spinning user.
const LOOK_EVERY: Duration = Duration::from_micros(20);

/// The CPUs of an I/O thread and a spinning user.
#[derive(Debug)]
pub(super) struct ThreadCpus {
    /// The CPU on which the thread was seen last; only the thread writes it.
    thread: AtomicUsize,
    /// The CPU on which a spinning user shares the thread's CPU. One of several users may clear the
    /// mark of another, which sets it again soon.
    user: AtomicUsize,
}

impl Default for ThreadCpus {
    fn default() -> Self {
        Self { thread: AtomicUsize::new(NO_CPU), user: AtomicUsize::new(NO_USER) }
    }
}

impl ThreadCpus {
    /// Stores the CPU of the calling thread, which is the I/O thread.
    pub fn note(&self) {
        put(&self.thread, sched_getcpu());
    }

    /// Whether a user spins on the thread's CPU.
    pub fn is_crowded(&self) -> bool {
        self.user.load(Ordering::Relaxed) == self.thread.load(Ordering::Relaxed)
    }

    /// Whether the calling user spins on the thread's CPU; marks it for the thread.
    fn crowds(&self) -> bool {
        let here = sched_getcpu();
        let crowds = self.thread.load(Ordering::Relaxed) == here;
        put(&self.user, if crowds { here } else { NO_USER });
        crowds
    }

    /// Spins until `waiter` is notified, at most for `timeout`, and yields to the thread where that
    /// needs the same CPU.
    pub fn spin(&self, waiter: &Waiter, timeout: Duration) {
        let start = Instant::now();
        while !waiter.take() {
            let left = timeout.saturating_sub(start.elapsed());
            if left.is_zero() {
                return;
            }
            if self.crowds() {
                std::thread::yield_now();
            } else if waiter.wait(Wait::Spin, Some(left.min(LOOK_EVERY))) {
                return;
            }
        }
    }
}

/// Writes the value only when it changes, because the other side reads it often.
fn put(place: &AtomicUsize, cpu: usize) {
    if place.load(Ordering::Relaxed) != cpu {
        place.store(cpu, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use millstream_cpu::thread::{allowed_cpus, pin_current_thread};

    #[test]
    fn a_user_is_crowded_only_where_the_thread_was_seen() {
        let cpus = allowed_cpus().unwrap();
        let first = cpus.iter().next().unwrap();
        std::thread::spawn(move || {
            pin_current_thread(first).unwrap();
            let place = ThreadCpus::default();
            assert!(!place.is_crowded() && !place.crowds(), "nobody is anywhere yet");
            place.note();
            assert!(!place.is_crowded() && place.crowds() && place.is_crowded());
            if let Some(other) = cpus.iter().nth(1) {
                pin_current_thread(other).unwrap();
                assert!(!place.crowds() && !place.is_crowded(), "it has moved away");
            }
        })
        .join()
        .unwrap();
    }

    #[test]
    fn a_spin_ends_when_it_is_told_or_the_time_is_up() {
        let (place, waiter) = (ThreadCpus::default(), Waiter::new());
        let start = Instant::now();
        place.spin(&waiter, Duration::from_millis(2));
        assert!(start.elapsed() >= Duration::from_millis(2));
        waiter.notify();
        place.spin(&waiter, Duration::from_secs(3600));
        assert!(!waiter.take(), "it was taken");
    }
}
