//! Control packets: registers of blocks, acknowledgements, asynchronous messages.
//!
//! Protocol 1.0 (UHD 4.0 to 4.10), in 64-bit words:
//!
//! ```text
//! word 1   [9:0] dst port  [19:10] src port  [23:20] data words  [29:24] sequence
//!          [30] has time   [31] is ack       [47:32] source endpoint
//! word 2   timestamp, only if it has time
//! next     [19:0] address  [23:20] byte enables  [27:24] op  [31:30] status  [63:32] data 0
//! further  two data words each, the lower half first
//! ```
//!
//! Protocol 2.0 (UHD 4.11 on), in 32-bit words, without padding:
//!
//! ```text
//! word 1   [9:0] dst port  [13:10] data words  [14] has time  [15] is ack  [31:16] source endpoint
//! word 2   [9:0] src port  [27:20] sequence    [31:28] words to read
//! 3 and 4  timestamp, only if it has time, the lower half first
//! next     [19:0] address  [23:20] byte enables  [27:24] op  [31:30] status
//! further  one data word each
//! ```

mod codes;
mod data;
mod protocol;
mod repr;
#[cfg(test)]
mod tests;

pub use codes::{ControlStatus, Op};
pub use data::{DataWords, MAX_DATA_WORDS};
pub use protocol::Protocol;
pub use repr::CtrlRepr;

/// The port of client zero, the device's own register space.
pub const CLIENT_ZERO_PORT: u16 = 0;

/// Control sequence numbers of protocol 1.0 are counted modulo this.
pub const SEQ_MODULUS: u8 = 64;

/// Returns the port of the block with index `block_index`, given the device's number of control
/// endpoints.
#[must_use]
pub const fn block_port(control_endpoints: u16, block_index: u16) -> u16 {
    1 + control_endpoints + block_index
}
