//! Threads, clock, locks and waits of a run.
//!
//! In unit tests these are substitutes under a seeded scheduler, if one is active: see `sim`.

#[cfg(test)]
pub(super) use super::sim::{Condvar, Thread, Waiter, now, point, spawn};
#[cfg(not(test))]
pub(super) use real::{Condvar, Thread, Waiter, now, point, spawn};

#[cfg(not(test))]
mod real {
    pub(in crate::runtime) use millstream_ring::Waiter;
    pub(in crate::runtime) use parking_lot::Condvar;

    pub(in crate::runtime) type Thread = std::thread::JoinHandle<()>;

    /// Starts a thread with this name.
    pub(in crate::runtime) fn spawn(
        name: String,
        run: impl FnOnce() + Send + 'static,
    ) -> std::io::Result<Thread> {
        std::thread::Builder::new().name(name).spawn(run)
    }

    #[inline]
    pub(in crate::runtime) fn now() -> std::time::Instant {
        std::time::Instant::now()
    }

    /// Marks a point where a scheduler may switch threads.
    #[inline]
    pub(in crate::runtime) fn point() {}
}
