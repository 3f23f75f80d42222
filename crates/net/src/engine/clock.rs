//! The engine's clock; everything below is told the time.

use rustix::time::{ClockId, clock_gettime};

/// Nanoseconds since some fixed moment (CLOCK_MONOTONIC).
pub(super) fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}
