//! The engine's clock; all code below gets the time as an argument.

use rustix::time::{ClockId, clock_gettime};

/// Returns nanoseconds since a fixed moment (CLOCK_MONOTONIC).
pub(super) fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}
