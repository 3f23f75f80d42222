//! Management packets: topology discovery and stream endpoint registers (facts section 6).
//!
//! A packet is a header item and a list of *hops*, each a list of operations. Every node on the
//! path removes the first hop, executes it, and forwards the packet; answers are appended to the
//! hop that is then first. Items are 64 bits, each in its own W-bit word; the last one need not be
//! padded.
//!
//! [`Packet`] is a view without copies, [`Writer`] emits hops into a buffer, and [`MgmtRepr`]
//! stores a whole small packet for execution by a node ([`MgmtRepr::execute`]).

mod node;
mod op;
mod repr;
#[cfg(test)]
mod tests;
mod view;
mod writer;

pub use node::{Node, NodeInfo};
pub use op::Op;
pub use repr::{ForwardHops, MAX_OPS, MgmtRepr};
pub use view::{Hop, Hops, Packet};
pub use writer::Writer;

/// The RFNoC protocol version of UHD 4.0 to 4.10: 1.0.
pub const PROTOCOL_VERSION: u16 = 0x0100;

/// The most operations in one hop, by the 8-bit count.
pub const MAX_HOP_OPS: usize = 256;
