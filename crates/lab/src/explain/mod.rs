//! Why an answer was late: a trace that is stopped at the first outlier, and the cause it shows.
//!
//! ```text
//!   observer (a process)          lookout                      the kernel
//!     sleeps to a deadline          makes a ring ─────────▶ switches, interrupts, timers, faults
//!     was it late?  ── stops the ring ────────────────────▶ (what happened until now stays)
//!                   ── tells ──▶    reads it, cuts the time from deadline to answer in stretches,
//!                                   gives each to a cause, and names the one that took most
//! ```
//!
//! What a trace cannot show: a hypervisor that takes the CPU leaves nothing but silence, as does a
//! kernel with interrupts off for long; where the machine is a guest, silence is called steal.

mod cause;
pub mod flood;
mod helper;
mod lookout;
pub mod observer;
mod timeline;
pub mod trials;

pub use cause::{Cause, Explanation, Outlier, Share, explain};
pub use lookout::{Lookout, LookoutError, StartObserver};
pub use timeline::{Doing, Holder, Stretch};
