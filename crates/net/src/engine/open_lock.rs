//! The lock that serialises opening and closing one link, without stopping other links.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use super::inline::Inline;
use super::served::{Driver, OpenLink};

/// The lock of one link and its open state.
#[derive(Default)]
pub(super) struct OpenLock {
    /// Locked while the link, or a port on it, is opened or closed, which may take seconds.
    turn: Mutex<()>,
    /// The open link. Locked for a moment only.
    open: Mutex<Open>,
}

/// The open link and driver, as weak references.
#[derive(Default)]
struct Open {
    link: Weak<OpenLink>,
    inline: Weak<Inline>,
}

impl OpenLock {
    /// Waits until no other thread opens or closes anything here.
    pub fn lock(&self) -> MutexGuard<'_, ()> {
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the link, if it is open. To be called with the lock held ([turn](Self::turn)), so
    /// that the link does not close meanwhile.
    pub fn link(&self) -> Option<Arc<OpenLink>> {
        self.open().link.upgrade()
    }

    /// Returns the link's driver, if its users drive it. It does not keep the link open.
    pub fn inline(&self) -> Option<Arc<Inline>> {
        self.open().inline.upgrade()
    }

    /// Stores the opened link.
    pub fn opened(&self, link: &Arc<OpenLink>) {
        let inline = match &link.driver {
            Driver::Inline(inline) => Arc::downgrade(inline),
            Driver::Thread(_) => Weak::new(),
        };
        *self.open() = Open { link: Arc::downgrade(link), inline };
    }

    /// Whether nothing is open.
    pub fn is_empty(&self) -> bool {
        self.open().link.strong_count() == 0
    }

    fn open(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
