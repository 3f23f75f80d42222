//! What the threads of a run are made of, tell the time by and wait with.
//!
//! In unit tests these are stand-ins that a seeded scheduler decides about, where one is at work:
//! see `sim`.

#[cfg(test)]
pub(super) use super::sim::{Condvar, Thread, Waiter, now, point, spawn};
#[cfg(not(test))]
pub(super) use real::{Condvar, Thread, Waiter, now, point, spawn};

#[cfg(not(test))]
mod real {
    pub(in crate::runtime) use millstream_ring::Waiter;
    pub(in crate::runtime) use parking_lot::Condvar;

    pub(in crate::runtime) type Thread = std::thread::JoinHandle<()>;

    /// Starts a thread of that name.
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

    /// Where a scheduler may let another thread go on.
    #[inline]
    pub(in crate::runtime) fn point() {}
}
