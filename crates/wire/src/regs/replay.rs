//! Registers of the block Replay: memory that records one stream and plays another. Each
//! port has a bank; values of 64 bits begin with their lower half.

use crate::bits::register;

/// Distance of the banks of two ports.
pub const BANK: u32 = 0x100;

/// `[31:16]` major and `[15:0]` minor version of this map, in the bank of port 0.
pub const COMPAT: u32 = 0x00;
/// Read: [`MemorySize`].
pub const MEMORY: u32 = 0x04;
/// Any value: recording begins anew at its base.
pub const RECORD_RESTART: u32 = 0x08;
/// Where recording begins, bytes, 64 bits.
pub const RECORD_BASE: u32 = 0x10;
/// The most bytes to record, 64 bits.
pub const RECORD_SIZE: u32 = 0x18;
/// Bytes recorded, 64 bits.
pub const RECORD_FULLNESS: u32 = 0x20;
/// Where playing begins, bytes, 64 bits.
pub const PLAY_BASE: u32 = 0x28;
/// The bytes behind which playing wraps around, 64 bits.
pub const PLAY_SIZE: u32 = 0x30;
/// The words that a finite command plays, 64 bits.
pub const PLAY_WORDS: u32 = 0x38;
/// The time of a timed command, ticks, 64 bits.
pub const PLAY_TIME: u32 = 0x40;
/// A command; see [`command`]. It waits behind earlier ones.
pub const PLAY_COMMAND: u32 = 0x48;
/// Words of a packet.
pub const PACKET_WORDS: u32 = 0x4C;
/// Bytes of an item: time counts items.
pub const ITEM_BYTES: u32 = 0x50;
/// Where the next byte is recorded, 64 bits.
pub const RECORD_POSITION: u32 = 0x54;
/// Which byte is played next, 64 bits.
pub const PLAY_POSITION: u32 = 0x5C;
/// The commands that may still be sent.
pub const COMMANDS_FREE: u32 = 0x64;

/// Commands, in the lowest two bits, and their time.
pub mod command {
    /// Stops, and forgets the commands that wait.
    pub const STOP: u32 = 0;
    /// Plays a number of words.
    pub const FINITE: u32 = 1;
    /// Plays without an end.
    pub const CONTINUOUS: u32 = 2;
    /// Plays what is being recorded, and does not overtake it; with [`FINITE`] (version 1.3 on).
    pub const FOLLOW: u32 = 1 << 29;
    /// The last packet has no end of burst (version 1.2 on).
    pub const WITHOUT_EOB: u32 = 1 << 30;
    /// The first packet has the time of [`super::PLAY_TIME`].
    pub const TIMED: u32 = 1 << 31;
}

register! {
    /// The register [`MEMORY`].
    pub struct MemorySize {
        /// `[31:16]` bits of a word.
        word_bits: u16 = 16, 16;
        /// `[15:0]` log2 of the bytes of the memory.
        bytes_log2: u16 = 0, 16;
    }
}
