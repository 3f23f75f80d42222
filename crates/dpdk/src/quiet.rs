//! Calls that may start threads are made with every signal blocked.

use std::mem::MaybeUninit;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// While this exists the calling thread takes no signals, and no other thread is in such a call.
///
/// A thread that is started meanwhile inherits the mask for good: signals, SIGPIPE of a peer that
/// left included, stay with the threads of the application.
pub(crate) struct Quiet {
    before: libc::sigset_t,
    _alone: MutexGuard<'static, ()>,
}

impl Quiet {
    pub fn new() -> Self {
        static ALONE: Mutex<()> = Mutex::new(());
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let (mut all, mut before) = (MaybeUninit::uninit(), MaybeUninit::uninit());
        // SAFETY: the first call writes the set that the second reads; the second writes the mask
        // as it was. Neither can fail with these arguments (pthread_sigmask(3)).
        let before = unsafe {
            libc::sigfillset(all.as_mut_ptr());
            libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr());
            before.assume_init()
        };
        Self { before, _alone: alone }
    }
}

impl Drop for Quiet {
    fn drop(&mut self) {
        self.take_pipe();
        // SAFETY: the mask that `new` found.
        unsafe {
            libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.before, std::ptr::null_mut());
        }
    }
}

impl Quiet {
    /// Takes a SIGPIPE that a write to a peer that left has made pending for this thread.
    fn take_pipe(&self) {
        let mut pipe = MaybeUninit::uninit();
        let now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: the set is written before it is read; a wait of no time takes what is pending.
        unsafe {
            libc::sigemptyset(pipe.as_mut_ptr());
            libc::sigaddset(pipe.as_mut_ptr(), libc::SIGPIPE);
            libc::sigtimedwait(pipe.as_ptr(), std::ptr::null_mut(), &raw const now);
        }
    }
}
