//! Time-outs as points in time.

use std::time::{Duration, Instant};

/// Longer than any time-out that is one.
pub(crate) const YEAR: Duration = Duration::from_secs(365 * 24 * 3600);

/// When `timeout` is over. One too long for the clock is a year.
pub(crate) fn deadline(timeout: Duration) -> Instant {
    Instant::now() + timeout.min(YEAR)
}
