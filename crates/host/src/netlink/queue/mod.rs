//! The transmit queue of an interface (rtnetlink(7), tc(8)).

mod hold_back;
mod launch;
mod port;

pub use launch::LaunchQueue;
pub use port::{PortShape, QueueOrder, Queued};

/// `struct tcmsg`.
const FIXED_BYTES: usize = 20;
/// `linux/pkt_sched.h`.
const TC_H_ROOT: u32 = u32::MAX;
/// The handle 1:0 of the queue at an interface's root.
const HANDLE: u32 = 1 << 16;
/// `linux/rtnetlink.h`.
const TCA_KIND: u16 = 1;
const TCA_OPTIONS: u16 = 2;

/// Returns the fixed part of a message about the queue or class `handle` below `parent`.
fn fixed(interface: u32, handle: u32, parent: u32) -> Vec<u8> {
    [0, interface, handle, parent, 0].map(u32::to_ne_bytes).concat()
}
