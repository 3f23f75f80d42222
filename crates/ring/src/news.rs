//! A flag that says that something was sent, for a receiver that has many places to look at.

use crate::sync::{AtomicBool, Ordering};

/// Whether something was sent since the receiver last looked. It wakes nobody.
#[derive(Debug)]
pub struct ChangeFlag(AtomicBool);

impl ChangeFlag {
    /// No news.
    #[must_use]
    pub fn new() -> Self {
        Self(AtomicBool::new(false))
    }

    /// Says that something was sent before this; any of several senders.
    #[inline]
    pub fn tell(&self) {
        // Release: who takes the news sees what was sent. An exchange, and no store, continues the
        // release sequence of other senders: who takes the news of the last sees what all sent.
        self.0.swap(true, Ordering::Release);
    }

    /// Whether there is news; a look that costs nothing.
    #[inline]
    #[must_use]
    pub fn is_there(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Takes the news, before the receiver looks for what was sent: what comes meanwhile is news
    /// again.
    #[inline]
    pub fn take(&self) {
        self.0.swap(false, Ordering::Acquire);
    }
}

impl Default for ChangeFlag {
    fn default() -> Self {
        Self::new()
    }
}
