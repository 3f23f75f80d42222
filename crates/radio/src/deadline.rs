//! Time-outs as points in time.

use std::time::{Duration, Instant};

/// When `timeout` is over. One too long for the clock is a year.
pub(crate) fn deadline(timeout: Duration) -> Instant {
    const YEAR: Duration = Duration::from_secs(365 * 24 * 3600);
    Instant::now() + timeout.min(YEAR)
}
