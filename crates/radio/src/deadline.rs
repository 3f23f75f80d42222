//! Time-outs as points in time.

use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use crate::RadioError;

/// Longer than any real time-out.
pub(crate) const YEAR: Duration = Duration::from_secs(365 * 24 * 3600);

/// Returns the end of `timeout`, with a year in place of one too long for the clock.
pub(crate) fn deadline(timeout: Duration) -> Instant {
    deadline_after(Instant::now(), timeout)
}

/// Returns the end of a `timeout` that began at `now`.
pub(crate) fn deadline_after(now: Instant, timeout: Duration) -> Instant {
    now + timeout.min(YEAR)
}

/// The time that all steps of opening a device may take together.
#[derive(Debug, Clone, Copy)]
pub struct OpenDeadline {
    until: Instant,
    allowed: Duration,
}

impl OpenDeadline {
    /// Sets the limit to `allowed` from now.
    pub fn new(allowed: Duration) -> Self {
        Self { until: deadline(allowed), allowed }
    }

    /// Returns the time left.
    pub fn left(&self) -> Duration {
        self.until.saturating_duration_since(Instant::now())
    }

    /// Checks that another step of opening the device at `address` may begin.
    ///
    /// # Errors
    /// [`RadioError::OpenTooSlow`].
    pub fn check(&self, address: Ipv4Addr) -> Result<(), RadioError> {
        if self.left().is_zero() {
            return Err(RadioError::OpenTooSlow { address, allowed_s: self.allowed.as_secs_f64() });
        }
        Ok(())
    }
}
