//! Management packets: topology discovery and stream endpoint registers.
//!
//! A packet is a header item and a list of *hops*, each a list of operations. Every node on the
//! path removes the first hop, executes it, and forwards the packet; answers are appended to the
//! hop that is then first. Items are 64 bits, each in its own W-bit word; the last one need not be
//! padded.
//!
//! [`MgmtRepr`] stores a whole packet, for a host to write and a node to execute
//! ([`MgmtRepr::execute`]).

mod node;
mod op;
mod repr;
#[cfg(test)]
mod tests;

pub use node::{Node, NodeInfo};
pub use op::Op;
pub use repr::{ForwardHops, MAX_OPS, MgmtRepr};

/// The RFNoC protocol version of UHD 4.0 to 4.10: 1.0.
pub const PROTOCOL_VERSION: u16 = 0x0100;
