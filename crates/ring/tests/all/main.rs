//! Tests of the public interface of rings and channels.
//!
//! One program holds all of these tests: linking is the main cost.

#![cfg(not(loom))]

mod aside;
// Miri has no poll(2).
#[cfg(not(miri))]
mod beacon;
#[cfg(not(miri))]
mod doorbell;
mod oracle;
mod shared;
mod spsc;
mod threads;

/// Returns `count`, or fewer under Miri, where a step takes a thousand times as long.
fn steps(count: u64) -> u64 {
    if cfg!(miri) { count.div_ceil(1000).max(10) } else { count }
}
