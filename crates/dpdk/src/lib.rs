//! DPDK's environment (EAL) and Ethernet ports, behind a C shim of burst-level calls.
//!
//! What makes DPDK awkward inside a library is kept in here: EAL is started by a thread of its own,
//! so that the caller keeps its affinity; every call that may start threads is made with all
//! signals blocked, so that these never take a signal that is the caller's; what DPDK logs is kept
//! for error messages; nothing is left in the file system; and an EAL that the application around
//! us has started is shared.
//!
//! Without the feature `libdpdk` there is nothing in this crate, and it builds everywhere.

#[cfg(feature = "libdpdk")]
mod eal;
#[cfg(feature = "libdpdk")]
mod error;
#[cfg(feature = "libdpdk")]
mod port;
#[cfg(feature = "libdpdk")]
mod quiet;
#[cfg(feature = "libdpdk")]
mod raw;

#[cfg(feature = "libdpdk")]
pub use eal::{Eal, EalOptions, start};
#[cfg(feature = "libdpdk")]
pub use error::DpdkError;
#[cfg(feature = "libdpdk")]
pub use port::{DeviceCounters, FlowRule, LinkState, Part, Port, PortWanted};
