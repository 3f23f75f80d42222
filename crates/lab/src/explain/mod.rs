//! Explains a late answer: a trace that stops at the first outlier, and the cause that it shows.
//!
//! ```text
//!   observer (a process)          WatchedThread                the kernel
//!     sleeps to a deadline          makes a ring ─────────▶ switches, interrupts, timers, faults
//!     was it late?  ── stops the ring ────────────────────▶ (what happened until now stays)
//!                   ── reports ─▶   reads it, cuts the time from deadline to answer in stretches,
//!                                   assigns each to a cause, and names the longest one
//! ```
//!
//! A [`TraceMonitor`] does the same for measuring threads of this process: the first late one stops
//! the ring, and the thread that started them reads it meanwhile.
//!
//! A limit: a hypervisor that takes the CPU leaves only silence in a trace, as does a kernel with
//! interrupts off for long; in a guest, silence counts as steal.

mod cause;
pub mod flood;
mod late_round_trip;
mod monitor;
pub mod observer;
mod recorder;
mod round_trip_monitor;
mod timeline;
pub mod trials;
mod trigger;
mod watched;

pub use cause::{Outlier, explain};
pub use monitor::{LateReporter, TraceMonitor};
pub use recorder::Late;
pub use round_trip_monitor::{LateTrip, RoundTripMonitor, Stop};
pub use timeline::{Holder, ThreadActivity, TimeSpan};
pub(crate) use trigger::OneShotTrigger;
pub use watched::{LookoutError, StartObserver, WatchedThread};
