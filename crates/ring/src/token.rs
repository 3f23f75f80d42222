//! The token protocol: news is never missed between a last look and falling asleep.
//!
//! One word belongs to one owner. Notifiers leave a token in it; the owner takes it, or says that
//! it sleeps, in which case whoever leaves the token next must wake it.

use crate::sync::{AtomicU32, Ordering};

const EMPTY: u32 = 0;
const TOKEN: u32 = 1;
/// The owner sleeps, or is about to.
pub(crate) const ASLEEP: u32 = 2;

/// Leaves the token; true if the owner sleeps, and the caller is the one to wake it.
#[inline]
pub(crate) fn leave(word: &AtomicU32) -> bool {
    // Release: what the notifier published is visible to whoever takes the token. The
    // exchange (not a plain store) continues the release sequence of earlier notifiers.
    word.swap(TOKEN, Ordering::AcqRel) == ASLEEP
}

/// Takes the token if it is there. Owner only.
pub(crate) fn take(word: &AtomicU32) -> bool {
    word.load(Ordering::Relaxed) == TOKEN && word.swap(EMPTY, Ordering::AcqRel) == TOKEN
}

/// Says that the owner is about to sleep; false if there is a token, so that it may not.
pub(crate) fn lie_down(word: &AtomicU32) -> bool {
    word.compare_exchange(EMPTY, ASLEEP, Ordering::AcqRel, Ordering::Acquire).is_ok()
}

/// Ends what [`lie_down`] began, whatever came of it; true if there was a token, which is taken.
pub(crate) fn get_up(word: &AtomicU32) -> bool {
    word.swap(EMPTY, Ordering::AcqRel) == TOKEN
}
