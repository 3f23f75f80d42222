//! DPDK's environment (EAL) and Ethernet ports, behind a C shim of burst-level calls.
//!
//! This crate hides what makes DPDK awkward inside a library. A separate thread starts EAL, so that
//! the caller keeps its affinity. Calls that may start threads are made with all signals blocked,
//! so that those threads never take a signal meant for the caller. DPDK's log is kept for error
//! messages. Nothing is left in the file system. An EAL that the surrounding application has
//! started is shared.
//!
//! Without the feature `libdpdk` this crate is empty, and builds everywhere.

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
