//! Calls that may start threads are made with every signal blocked.

use std::mem::MaybeUninit;
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

/// A guard: while it exists the calling thread takes no signals, and no other thread is in such a
/// call.
///
/// A thread that is started meanwhile inherits the mask permanently: signals, including SIGPIPE
/// from a peer that left, stay with the threads of the application.
pub(crate) struct SignalsBlocked {
    before: libc::sigset_t,
    _alone: MutexGuard<'static, ()>,
}

static ALONE: Mutex<()> = Mutex::new(());

impl SignalsBlocked {
    pub fn new() -> Self {
        Self::with(ALONE.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Creates the guard if no other thread is in such a call; it never waits.
    pub fn try_new() -> Option<Self> {
        match ALONE.try_lock() {
            Ok(alone) => Some(Self::with(alone)),
            Err(TryLockError::Poisoned(poisoned)) => Some(Self::with(poisoned.into_inner())),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    fn with(alone: MutexGuard<'static, ()>) -> Self {
        let (mut all, mut before) = (MaybeUninit::uninit(), MaybeUninit::uninit());
        // SAFETY: the first call writes the set that the second reads; the second writes the
        // previous mask. Neither can fail with these arguments (pthread_sigmask(3)).
        let before = unsafe {
            libc::sigfillset(all.as_mut_ptr());
            libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr());
            before.assume_init()
        };
        Self { before, _alone: alone }
    }
}

/// Puts the calling thread, and the threads that it starts, into the ordinary scheduling class: the
/// thread that opens a link may have a real-time one (sched(7)), which is not for DPDK's helpers.
pub(crate) fn be_ordinary() {
    let none = libc::sched_param { sched_priority: 0 };
    // SAFETY: it reads one struct. Every thread may give up a class, so it cannot fail.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_OTHER, &raw const none) };
}

impl Drop for SignalsBlocked {
    fn drop(&mut self) {
        self.take_pipe();
        // SAFETY: it is the mask that `new` found.
        unsafe {
            libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.before, std::ptr::null_mut());
        }
    }
}

impl SignalsBlocked {
    /// Takes a SIGPIPE that is pending for this thread after a write to a peer that left.
    fn take_pipe(&self) {
        let mut pipe = MaybeUninit::uninit();
        let now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: the set is written before it is read; a wait without time takes the pending
        // signal.
        unsafe {
            libc::sigemptyset(pipe.as_mut_ptr());
            libc::sigaddset(pipe.as_mut_ptr(), libc::SIGPIPE);
            libc::sigtimedwait(pipe.as_ptr(), std::ptr::null_mut(), &raw const now);
        }
    }
}
