//! Device time: the sample clock, and the timekeeper the host sets.

mod clock;
mod device_clock;

pub use clock::SampleClock;
pub use device_clock::DeviceClock;

/// Returns nanoseconds of `CLOCK_MONOTONIC`; the only function that reads a clock.
pub(crate) fn monotonic_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}
