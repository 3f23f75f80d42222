//! A descriptor that is readable while its receiver has something to look at, for a receiver that
//! other programs' loops poll together with theirs.
//!
//! It costs a system call a sleep and none while the receiver is busy, and nothing at all as long
//! as nobody has asked for the descriptor. A [`Doorbell`](crate::Doorbell) is cheaper where the
//! owner's thread sleeps by itself.

use crate::bell::Bell;
use crate::sync::{AtomicBool, AtomicU32, Ordering, fence};
use std::io;
#[cfg(not(loom))]
use std::os::fd::BorrowedFd;

/// The receiver found nothing and may sleep: the next news must ring.
const ARMED: u32 = 0;
/// Somebody is about to ring.
const RINGING: u32 = 1;
/// It was rung; the receiver is to look before it arms it again.
const RUNG: u32 = 2;

/// The descriptor of one receiver. Anybody may have news for it.
#[derive(Debug)]
pub struct Beacon {
    bell: Bell,
    state: AtomicU32,
    /// Somebody polls the descriptor.
    polled: AtomicBool,
}

impl Beacon {
    /// A descriptor that nobody has asked for.
    ///
    /// # Errors
    /// When the process or the system has no descriptor left.
    pub fn new() -> io::Result<Self> {
        let (state, polled) = (AtomicU32::new(ARMED), AtomicBool::new(false));
        Ok(Self { bell: Bell::new()?, state, polled })
    }

    /// Something was published. True if that took a system call.
    pub fn news(&self) -> bool {
        // With the one in `arm`: either this sees that it is armed, or the receiver, who looks
        // once more after that, sees what was published.
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
        // Release: who arms it from here on silences it after it was rung.
        self.state.store(RUNG, Ordering::Release);
        polled
    }

    /// The receiver found nothing: the descriptor is to be quiet until there is news. The receiver
    /// has to look once more after this, and to say so ([`news`](Self::news)) if it finds some.
    pub fn arm(&self) {
        // Somebody who is about to ring wakes the receiver once more; what is rung late must not
        // stay readable behind this.
        if self.state.load(Ordering::Acquire) != RUNG {
            return;
        }
        if self.polled.load(Ordering::Relaxed) {
            self.bell.silence();
        }
        self.state.store(ARMED, Ordering::Release);
        fence(Ordering::SeqCst);
    }

    /// From now on it is rung. There may be something already: whoever polls looks once.
    fn watch(&self) {
        if !self.polled.swap(true, Ordering::AcqRel) {
            self.bell.ring();
            let (success, failure) = (Ordering::AcqRel, Ordering::Relaxed);
            let _ = self.state.compare_exchange(ARMED, RUNG, success, failure);
        }
    }

    /// The descriptor, to be polled for reading. From now on it is rung.
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
