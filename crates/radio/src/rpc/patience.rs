//! Long waits that the program's user can end.

use std::sync::OnceLock;
use std::time::Duration;

/// The longest part of a long wait after which the user's wish is looked at.
pub(super) const LOOK: Duration = Duration::from_millis(100);

static ASKED: OnceLock<fn() -> bool> = OnceLock::new();

/// Ends every call to a device that may take longer than [`super::CALL_TIMEOUT`] as soon as `asked`
/// returns true: the program is asked to end. Shorter ones are completed, since an orderly end
/// needs some. Only the first function counts.
pub fn end_waits_if(asked: fn() -> bool) {
    let _ = ASKED.set(asked);
}

/// Returns whether the program is asked to end.
pub(super) fn is_over() -> bool {
    ASKED.get().is_some_and(|asked| asked())
}
