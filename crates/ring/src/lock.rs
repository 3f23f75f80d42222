//! A mutex for everything outside the steady state: it counts its uses, so that tests can prove
//! that the steady state takes no lock.

use crate::sync::{Mutex, MutexGuard};
use std::cell::Cell;
use std::fmt;

thread_local! {
    static TAKEN: Cell<u64> = const { Cell::new(0) };
}

/// Returns how many [`Lock`]s the calling thread has taken so far, contended or not.
#[must_use]
pub fn locks_taken() -> u64 {
    TAKEN.with(Cell::get)
}

/// A mutex whose every use is counted in [`locks_taken`].
#[derive(Default)]
pub struct Lock<T>(Mutex<T>);

impl<T> Lock<T> {
    /// Makes a lock around a value.
    #[cfg(not(loom))]
    #[must_use]
    pub const fn new(value: T) -> Self {
        Self(Mutex::new(value))
    }

    /// Makes a lock around a value.
    #[cfg(loom)]
    #[must_use]
    pub fn new(value: T) -> Self {
        Self(Mutex::new(value))
    }

    /// Waits until the lock is free and takes it.
    pub fn lock(&self) -> MutexGuard<'_, T> {
        TAKEN.with(|taken| taken.set(taken.get() + 1));
        #[cfg(not(loom))]
        return self.0.lock();
        #[cfg(loom)]
        return self.0.lock().unwrap();
    }
}

#[cfg(not(loom))]
impl<T> Lock<T> {
    /// Takes the lock if it is free; never waits.
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        TAKEN.with(|taken| taken.set(taken.get() + 1));
        self.0.try_lock()
    }
}

impl<T> fmt::Debug for Lock<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lock").finish_non_exhaustive()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn each_use_counts_on_its_own_thread() {
        let lock = Lock::new(1);
        let before = locks_taken();
        *lock.lock() += 1;
        std::thread::scope(|scope| scope.spawn(|| *lock.lock() += 1).join()).unwrap();
        assert_eq!(*lock.lock(), 3);
        assert_eq!(locks_taken(), before + 2);
        let held = lock.lock();
        assert!(lock.try_lock().is_none());
        drop(held);
        assert_eq!(lock.try_lock().as_deref(), Some(&3));
    }
}
