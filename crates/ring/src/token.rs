//! The token protocol: no notification is lost between a last poll and the sleep.
//!
//! One word belongs to one owner. Notifiers leave a token in it; the owner takes it, or marks
//! itself asleep, in which case the next notifier must wake it.

use crate::sync::{AtomicU32, Ordering};

const EMPTY: u32 = 0;
const TOKEN: u32 = 1;
/// The owner sleeps, or is about to.
pub(crate) const ASLEEP: u32 = 2;

/// Leaves the token; returns true if the owner sleeps, and the caller must wake it.
#[inline]
pub(crate) fn leave(word: &AtomicU32) -> bool {
    // Release: the data that the notifier published is visible to the owner that takes the token.
    // The exchange (not a plain store) continues the release sequence of earlier notifiers.
    word.swap(TOKEN, Ordering::AcqRel) == ASLEEP
}

/// Takes the token if it is there. Owner only.
pub(crate) fn take(word: &AtomicU32) -> bool {
    word.load(Ordering::Relaxed) == TOKEN && word.swap(EMPTY, Ordering::AcqRel) == TOKEN
}

/// Marks the owner as about to sleep; returns false if there is a token, so that it may not sleep.
pub(crate) fn lie_down(word: &AtomicU32) -> bool {
    word.compare_exchange(EMPTY, ASLEEP, Ordering::AcqRel, Ordering::Acquire).is_ok()
}

/// Ends the sleep that [`lie_down`] began, whether the owner slept or not; returns true if there
/// was a token, which is taken.
pub(crate) fn get_up(word: &AtomicU32) -> bool {
    word.swap(EMPTY, Ordering::AcqRel) == TOKEN
}
