//! A descriptor that is readable while its receiver has something to poll, for a receiver in other
//! programs' poll loops.
//!
//! It costs one system call per sleep, none while the receiver is busy, and nothing at all until
//! [`poll_fd`](Beacon::poll_fd) is called. A [`Doorbell`](crate::Doorbell) is cheaper where the
//! owner's thread sleeps by itself.

use crate::bell::Bell;
use crate::sync::{AtomicBool, AtomicU32, Ordering, fence};
use std::io;
#[cfg(not(loom))]
use std::os::fd::BorrowedFd;

/// The receiver found nothing and may sleep: the next notification must ring.
const ARMED: u32 = 0;
/// A sender is about to ring.
const RINGING: u32 = 1;
/// It was rung; the receiver must poll before it arms it again.
const RUNG: u32 = 2;

/// The descriptor of one receiver. Any thread may notify it.
#[derive(Debug)]
pub struct Beacon {
    bell: Bell,
    state: AtomicU32,
    /// The descriptor was handed out and may be polled.
    polled: AtomicBool,
}

impl Beacon {
    /// Makes a beacon whose descriptor is not polled yet.
    ///
    /// # Errors
    /// When the process or the system has no descriptor left.
    pub fn new() -> io::Result<Self> {
        let (state, polled) = (AtomicU32::new(ARMED), AtomicBool::new(false));
        Ok(Self { bell: Bell::new()?, state, polled })
    }

    /// Notifies the receiver that something was published. Returns true if that took a system call.
    pub fn news(&self) -> bool {
        // Pairs with the fence in `arm`: either this sees the armed state, or the receiver, which
        // polls once more after that, sees what was published.
        fence(Ordering::SeqCst);
        let armed = self.state.load(Ordering::Relaxed) == ARMED;
        let (success, failure) = (Ordering::AcqRel, Ordering::Relaxed);
        if !armed || self.state.compare_exchange(ARMED, RINGING, success, failure).is_err() {
            return false;
        }
        let polled = self.polled.load(Ordering::Relaxed);
        if polled {
            self.bell.ring();
        }
        // Release: a receiver that arms it from here on silences it after it was rung.
        self.state.store(RUNG, Ordering::Release);
        polled
    }

    /// Arms the descriptor after the receiver found nothing: it is quiet until the next
    /// notification. The receiver must poll once more after this, and call [`news`](Self::news) if
    /// it finds something.
    pub fn arm(&self) {
        // A sender that is about to ring wakes the receiver once more; a late ring must not stay
        // readable after this.
        if self.state.load(Ordering::Acquire) != RUNG {
            return;
        }
        if self.polled.load(Ordering::Relaxed) {
            self.bell.silence();
        }
        self.state.store(ARMED, Ordering::Release);
        fence(Ordering::SeqCst);
    }

    /// Enables ringing. Something may be there already: the receiver polls once.
    fn watch(&self) {
        if !self.polled.swap(true, Ordering::AcqRel) {
            self.bell.ring();
            let (success, failure) = (Ordering::AcqRel, Ordering::Relaxed);
            let _ = self.state.compare_exchange(ARMED, RUNG, success, failure);
        }
    }

    /// Returns the descriptor, to be polled for reading. From now on it is rung.
    #[cfg(not(loom))]
    pub fn poll_fd(&self) -> BorrowedFd<'_> {
        self.watch();
        self.bell.fd()
    }

    /// Sleeps until the descriptor is readable, which it then stays; for `loom`.
    #[cfg(loom)]
    pub fn poll(&self) {
        self.watch();
        self.bell.sleep();
    }

    /// Whether the descriptor is readable; for `loom`.
    #[cfg(loom)]
    pub fn is_readable(&self) -> bool {
        self.bell.is_ready()
    }
}
