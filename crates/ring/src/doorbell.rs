//! A wake-up for a thread that sleeps in poll(2) together with other descriptors.
//!
//! The protocol is the [`Waiter`](crate::Waiter)'s, with an eventfd(2) in place of the futex:
//! ringing is one atomic exchange, and a system call only when the owner sleeps.
//!
//! A wake-up may be spurious (a ring that was seen already can still make the descriptor readable
//! once more), and is never lost: a ring after the owner's last poll finds the owner awake, so that
//! its [`Doorbell::wait`] returns at once, or asleep, and wakes it.

use crate::bell::Bell;
use crate::sync::{AtomicU32, Ordering, fence};
use crate::token;
use std::io;
#[cfg(not(loom))]
use std::os::fd::BorrowedFd;
use std::time::Duration;

/// The most other descriptors that one [`Doorbell::wait`] watches.
pub const DESCRIPTORS_MAX: usize = 31;

/// One thread's bell.
#[derive(Debug)]
pub struct Doorbell {
    word: AtomicU32,
    bell: Bell,
}

impl Doorbell {
    /// Makes a bell that is not rung.
    ///
    /// # Errors
    /// When the process or the system has no descriptor left.
    pub fn new() -> io::Result<Self> {
        Ok(Self { word: AtomicU32::new(0), bell: Bell::new()? })
    }

    /// Rings from any thread: an atomic exchange, and one write(2) if the owner sleeps.
    pub fn ring(&self) {
        if token::leave(&self.word) {
            self.bell.ring();
        }
    }

    /// Rings if the owner sleeps, and writes nothing while it is awake: for an owner that polls for
    /// the caller's data in [`Doorbell::wait_unless`].
    pub fn nudge(&self) {
        // Pairs with the fence in `wait_unless`: either this sees the owner asleep, or the owner's
        // poll sees what was published before this.
        fence(Ordering::SeqCst);
        if self.word.load(Ordering::Relaxed) == token::ASLEEP {
            self.ring();
        }
    }

    /// Sleeps until it is rung, one of `others` is readable (or in error), or `timeout` has passed
    /// (`None`: no limit); true if it was rung. Only the owning thread may wait.
    ///
    /// It may return early without reason: poll for work whatever it returns.
    ///
    /// # Errors
    /// The error of poll(2); a signal is not an error.
    ///
    /// # Panics
    /// With more than [`DESCRIPTORS_MAX`] others.
    #[cfg(not(loom))]
    pub fn wait(&self, others: &[BorrowedFd<'_>], timeout: Option<Duration>) -> io::Result<bool> {
        self.wait_unless(|| false, others, timeout)
    }

    /// As [`Doorbell::wait`], unless a last poll finds something: data that was published before a
    /// [`Doorbell::nudge`] that found the owner awake.
    ///
    /// # Errors
    /// Those of [`Doorbell::wait`].
    ///
    /// # Panics
    /// With more than [`DESCRIPTORS_MAX`] others.
    #[cfg(not(loom))]
    pub fn wait_unless(
        &self,
        look: impl FnOnce() -> bool,
        others: &[BorrowedFd<'_>],
        timeout: Option<Duration>,
    ) -> io::Result<bool> {
        assert!(others.len() <= DESCRIPTORS_MAX, "at most {DESCRIPTORS_MAX} descriptors");
        if !token::lie_down(&self.word) {
            return Ok(token::get_up(&self.word));
        }
        fence(Ordering::SeqCst);
        let slept = if look() { Ok(()) } else { self.bell.poll(others, timeout) };
        let rung = token::get_up(&self.word);
        slept.map(|()| rung)
    }

    /// As `wait`, for `loom`; [`Doorbell::disturb`] represents another descriptor.
    #[cfg(loom)]
    pub fn wait(&self, _timeout: Option<Duration>) -> io::Result<bool> {
        self.wait_unless(|| false)
    }

    /// As `wait_unless`, for `loom`.
    #[cfg(loom)]
    pub fn wait_unless(&self, look: impl FnOnce() -> bool) -> io::Result<bool> {
        if !token::lie_down(&self.word) {
            return Ok(token::get_up(&self.word));
        }
        fence(Ordering::SeqCst);
        if !look() {
            self.bell.poll();
        }
        Ok(token::get_up(&self.word))
    }

    /// Ends a sleep as another descriptor would.
    #[cfg(loom)]
    pub fn disturb(&self) {
        self.bell.disturb();
    }
}
