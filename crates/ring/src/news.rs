//! A flag that data was sent, for a receiver that polls many sources.

use crate::sync::{AtomicBool, Ordering};

/// Whether data was sent since the receiver's last poll. Setting it wakes no thread.
#[derive(Debug)]
pub struct ChangeFlag(AtomicBool);

impl ChangeFlag {
    /// Makes a flag that is not set.
    #[must_use]
    pub fn new() -> Self {
        Self(AtomicBool::new(false))
    }

    /// Sets the flag after data was sent; for any of several senders.
    #[inline]
    pub fn tell(&self) {
        // Release: a receiver that takes the flag sees the data. An exchange instead of a store
        // continues the release sequence of other senders: a receiver that takes the flag of the
        // last sender sees the data of all.
        self.0.swap(true, Ordering::Release);
    }

    /// Whether the flag is set; one relaxed load.
    #[inline]
    #[must_use]
    pub fn is_there(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Clears the flag before the receiver polls for data: data that comes meanwhile sets it again.
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
