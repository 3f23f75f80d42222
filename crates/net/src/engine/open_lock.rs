//! What makes opening and closing one link go one after the other, without stopping other links.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use super::inline::Inline;
use super::served::{Driver, OpenLink};

/// Where one link is opened and closed.
#[derive(Default)]
pub(super) struct OpenLock {
    /// Held while the link, or a port on it, is opened or closed: that may take seconds.
    turn: Mutex<()>,
    /// What is open. Held for a moment only.
    open: Mutex<Open>,
}

/// What is open, for as long as others hold it.
#[derive(Default)]
struct Open {
    link: Weak<OpenLink>,
    inline: Weak<Inline>,
}

impl OpenLock {
    /// Waits until nobody opens or closes anything here.
    pub fn lock(&self) -> MutexGuard<'_, ()> {
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The link, if it is open; call it in one's [turn](Self::turn), which sees to it that the link
    /// does not close outside of one.
    pub fn link(&self) -> Option<Arc<OpenLink>> {
        self.open().link.upgrade()
    }

    /// The link's driver, if its users drive it. Holding it does not keep the link open.
    pub fn inline(&self) -> Option<Arc<Inline>> {
        self.open().inline.upgrade()
    }

    /// Remembers the link that was opened.
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
