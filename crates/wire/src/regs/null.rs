//! Registers of the block NullSrcSink: a source of counting items and a sink. Counters have 64
//! bits, the lower half first: lines, and 8 bytes behind them packets.

use crate::bits::register;

/// Read: [`LineSize`]. [`RUN`], [`CLEAR`] and [`FINITE`].
pub const CONTROL: u32 = 0x00;
/// The lines of a packet, its header with them, less 2: 12 bits.
pub const PACKET_LINES_LESS_2: u32 = 0x04;
/// Bytes of a packet's items.
pub const PACKET_BYTES: u32 = 0x08;
/// Idle cycles between packets.
pub const IDLE_CYCLES: u32 = 0x0C;
/// What the sink took.
pub const SINK_COUNTERS: u32 = 0x10;
/// What the source made.
pub const SOURCE_COUNTERS: u32 = 0x20;
/// What passed through port 1.
pub const LOOP_COUNTERS: u32 = 0x30;
/// Packets of a finite source, 64 bits of which 48 count (UHD 4.10 on).
pub const PACKETS: u32 = 0x40;

/// The bits of [`PACKET_LINES_LESS_2`] that count.
pub const PACKET_LINES_MASK: u32 = (1 << 12) - 1;
/// The bits of [`PACKETS`] that count.
pub const PACKETS_MASK: u64 = (1 << 48) - 1;

/// The source ends after [`PACKETS`] packets (UHD 4.10 on).
pub const FINITE: u32 = 1 << 2;
/// The source runs.
pub const RUN: u32 = 1 << 1;
/// The counters become zero.
pub const CLEAR: u32 = 1 << 0;

register! {
    /// The upper half of [`CONTROL`].
    pub struct LineSize {
        /// `[31:24]` items of a line.
        items: u8 = 24, 8;
        /// `[23:16]` bits of an item.
        item_bits: u8 = 16, 8;
    }
}
