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
//! A [`Guard`] does the same for threads of this process that measure anyhow: the first that is
//! late stops the ring, and whoever started them reads it meanwhile.
//!
//! What a trace cannot show: a hypervisor that takes the CPU leaves nothing but silence, as does a
//! kernel with interrupts off for long; where the machine is a guest, silence is called steal.

mod cause;
pub mod flood;
mod guard;
mod helper;
mod lookout;
pub mod observer;
mod recorder;
mod timeline;
pub mod trials;
mod trip;
mod trips;
mod way;

pub use cause::{Outlier, explain};
pub use guard::{Guard, Snare};
pub use lookout::{Lookout, LookoutError, StartObserver};
pub use recorder::Late;
pub use timeline::{Doing, Holder, Stretch};
pub(crate) use trip::Trip;
pub use trips::{LateTrip, Stop, TripWatch};
