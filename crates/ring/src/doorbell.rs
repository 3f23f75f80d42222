//! A bell for a thread that sleeps in poll(2), together with other descriptors.
//!
//! The protocol is the [`Waiter`](crate::Waiter)'s, with an eventfd(2) in place of the futex:
//! ringing is one atomic exchange, and a system call only when the owner sleeps.
//!
//! A wake-up may be spurious (a ring that was seen already can still make the descriptor
//! readable once more), and is never lost: who rings after the owner's last look finds it awake,
//! so that its [`Doorbell::wait`] returns at once, or asleep, and wakes it.

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
    /// A bell that nobody has rung.
    ///
    /// # Errors
    /// When the process or the system has no descriptor left.
    pub fn new() -> io::Result<Self> {
        Ok(Self { word: AtomicU32::new(0), bell: Bell::new()? })
    }

    /// Rings: from any thread, an atomic exchange, and one write(2) if the owner sleeps.
    pub fn ring(&self) {
        if token::leave(&self.word) {
            self.bell.ring();
        }
    }

    /// Rings if the owner sleeps, and touches nothing while it is awake: for an owner that looks
    /// for the caller's news in [`Doorbell::wait_unless`].
    pub fn nudge(&self) {
        // With the one in `wait_unless`: either this sees the owner asleep, or the owner's look
        // sees what was published before this.
        fence(Ordering::SeqCst);
        if self.word.load(Ordering::Relaxed) == token::ASLEEP {
            self.ring();
        }
    }

    /// Whether it was rung since the owner last asked. Only the owning thread may ask.
    pub fn take(&self) -> bool {
        token::take(&self.word)
    }

    /// Sleeps until somebody rings, one of `others` is readable (or in error), or `timeout` has
    /// passed (`None`: no limit); true if it was rung. Only the owning thread may wait.
    ///
    /// It may return early without reason: look for work whatever it says.
    ///
    /// # Errors
    /// What poll(2) reports; a signal is no error.
    ///
    /// # Panics
    /// With more than [`DESCRIPTORS_MAX`] others.
    #[cfg(not(loom))]
    pub fn wait(&self, others: &[BorrowedFd<'_>], timeout: Option<Duration>) -> io::Result<bool> {
        self.wait_unless(|| false, others, timeout)
    }

    /// The same, unless a last look finds something: what was published before a
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

    /// The same for `loom`, where [`Doorbell::disturb`] stands for another descriptor.
    #[cfg(loom)]
    pub fn wait(&self, _timeout: Option<Duration>) -> io::Result<bool> {
        self.wait_unless(|| false)
    }

    /// The same for `loom`.
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
