//! The right of one stream at a time to a channel.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A thing with one holder at a time; this is the thing itself, or its one lease.
#[derive(Debug, Default)]
pub(crate) struct Lease {
    taken: Arc<AtomicBool>,
    is_lease: bool,
}

impl Lease {
    /// Returns the lease, or `None` while another one exists. Dropping it returns it.
    pub fn take(&self) -> Option<Self> {
        let free = !self.taken.swap(true, Ordering::AcqRel);
        free.then(|| Self { taken: Arc::clone(&self.taken), is_lease: true })
    }

    /// Returns whether a lease exists.
    pub fn is_taken(&self) -> bool {
        self.taken.load(Ordering::Acquire)
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        if self.is_lease {
            self.taken.store(false, Ordering::Release);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_lease_is_out_until_it_is_dropped() {
        let thing = Lease::default();
        let lease = thing.take().unwrap();
        assert!(thing.take().is_none() && thing.is_taken());
        drop(lease);
        assert!(!thing.is_taken());
        assert!(thing.take().is_some());
    }
}
