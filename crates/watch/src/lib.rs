//! Where samples were lost between a radio and a program, by the packets that passed a place of the
//! network: an account without I/O, for live packets and for captures.
//!
//! ```text
//! captured bytes ─▶ frame: one datagram ─▶ account: device, flow ─▶ flow: numbers and times
//!                                             │                        │
//!                                             └─ messages, credit ─────┴─▶ gaps
//! ```
//!
//! A flow is one direction of a CHDR stream. Its packets have sequence numbers and times. Missing
//! numbers are packets that were lost on their way to the place of the capture. A jump of the time
//! without missing numbers is samples that the radio did not send. What a receiver reports missing
//! and the capture has seen was lost behind it. Nothing is inferred beyond that.
//!
//! Flows of VITA 49 and datagrams with a counter are followed as far as their numbers go (see
//! [`FlowProtocol`]). A [`Judge`] puts what a host counts and names beside the gaps, and says at
//! which hop each loss occurred.
//!
//! Packets may be cut off behind their first bytes: [`SNAPLEN`] are enough.

mod account;
mod flow;
mod frame;
mod judge;
mod numbered;
mod open_gaps;
mod plain;
mod reading;
mod verdict;

pub use account::{AccountCounts, CaptureAccount, RadioMessage};
pub use flow::{Credit, DataFlow, FlowGap, FlowKey, LossPlace};
pub use frame::{Captured, LinkType};
pub use judge::{Judge, LossCause};
pub use plain::FlowProtocol;
pub use reading::{
    DroppedPacket, HopReading, InterfaceReading, SocketReading, StackReading, ThreadReading,
    ThreadWait,
};
pub use verdict::{Certainty, Hop, HopVerdict, JudgedLoss, LossKind, LossSource};

/// The bytes of each frame that an account needs: the headers with a VLAN tag and IP options, and a
/// whole stream status at the largest width.
pub const SNAPLEN: usize = 14 + 8 + 60 + 8 + 64 + 32;
