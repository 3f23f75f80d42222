//! The synchronisation primitives, from the standard library and the kernel, or from `loom`
//! when a model is being explored (`--cfg loom`).

#[cfg(not(loom))]
pub(crate) use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering, fence},
};

#[cfg(loom)]
pub(crate) use loom::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering, fence},
};

#[cfg(not(loom))]
pub(crate) use parking_lot::{Mutex, MutexGuard};

#[cfg(loom)]
pub(crate) use loom::cell::UnsafeCell;
#[cfg(loom)]
pub(crate) use loom::sync::{Mutex, MutexGuard};

/// The standard library's cell with the access methods of `loom`'s, which check every access.
#[cfg(not(loom))]
#[derive(Debug)]
pub(crate) struct UnsafeCell<T>(std::cell::UnsafeCell<T>);

#[cfg(not(loom))]
impl<T> UnsafeCell<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(std::cell::UnsafeCell::new(value))
    }

    pub(crate) fn with<R>(&self, read: impl FnOnce(*const T) -> R) -> R {
        read(self.0.get())
    }

    pub(crate) fn with_mut<R>(&self, write: impl FnOnce(*mut T) -> R) -> R {
        write(self.0.get())
    }
}

/// A word that a thread can sleep on: an atomic and its futex.
#[cfg(not(loom))]
#[derive(Debug, Default)]
pub(crate) struct Futex {
    pub(crate) word: AtomicU32,
}

#[cfg(not(loom))]
impl Futex {
    /// Sleeps while the word is `expected`, until woken or for `timeout`. May return early.
    pub(crate) fn wait(&self, expected: u32, timeout: Option<std::time::Duration>) {
        use rustix::thread::futex;
        let timeout = timeout.map(|t| futex::Timespec {
            tv_sec: i64::try_from(t.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: t.subsec_nanos().into(),
        });
        // Every outcome (woken, changed, timed out, interrupted) makes the caller read the word
        // again, so none is an error.
        let _ = futex::wait(&self.word, futex::Flags::PRIVATE, expected, timeout.as_ref());
    }

    /// Wakes the thread that sleeps on the word.
    pub(crate) fn wake(&self) {
        let _ = rustix::thread::futex::wake(&self.word, rustix::thread::futex::Flags::PRIVATE, 1);
    }
}

/// The same contract over `loom`'s condition variable: "compare and sleep" is one atomic step.
#[cfg(loom)]
#[derive(Debug, Default)]
pub(crate) struct Futex {
    pub(crate) word: AtomicU32,
    lock: loom::sync::Mutex<()>,
    condition: loom::sync::Condvar,
}

#[cfg(loom)]
impl Futex {
    pub(crate) fn wait(&self, expected: u32, _timeout: Option<std::time::Duration>) {
        let guard = self.lock.lock().unwrap();
        if self.word.load(Ordering::Relaxed) == expected {
            drop(self.condition.wait(guard).unwrap());
        }
    }

    pub(crate) fn wake(&self) {
        let _guard = self.lock.lock().unwrap();
        self.condition.notify_one();
    }
}

/// Spins one step.
pub(crate) fn spin_loop() {
    #[cfg(not(loom))]
    std::hint::spin_loop();
    #[cfg(loom)]
    loom::thread::yield_now();
}

/// Yields to other threads of this core.
pub(crate) fn yield_now() {
    #[cfg(not(loom))]
    std::thread::yield_now();
    #[cfg(loom)]
    loom::thread::yield_now();
}
