//! Stream status and stream command: the credit protocol of a stream.
//!
//! The sender of a stream sends *commands* and the receiver answers with *status*. Both count
//! bytes and packets cumulatively since the stream was initialised; counters wrap at the width of
//! their field.

mod command;
mod status;
#[cfg(test)]
mod tests;

pub use command::{CommandOp, CommandRepr};
pub use status::{SequenceGap, StatusRepr, StreamCondition, StreamPlace};

/// The 24-bit packet capacity that means "packets do not limit this stream".
pub const PACKETS_UNLIMITED: u32 = 0xFF_FFFF;

/// The bits of a count of packets, 40: counts wrap around behind them.
pub const PACKETS_MASK: u64 = (1 << 40) - 1;

/// The largest byte capacity and report period, 40 bits.
pub const MAX_CAPACITY_BYTES: u64 = (1 << 40) - 1;
