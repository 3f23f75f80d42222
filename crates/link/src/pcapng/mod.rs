//! The pcapng capture format, as far as links need it: Ethernet frames with nanosecond time stamps.
//! Source: draft-ietf-opsawg-pcapng, with its block and option numbers.
//!
//! Blocks are written into existing buffers, and read into one that is reused: a frame needs no
//! allocation in either direction.

mod read;
mod write;

pub use read::{CaptureError, CaptureItem, CaptureReader, CapturedPacket};
pub(crate) use write::stamp_ns;
pub use write::{
    CaptureStatistics, FrameStamp, interface, journal_entry, packet, packet_bytes, section,
    statistics,
};

/// Section header block, followed by the word that shows its byte order.
const SECTION: u32 = 0x0a0d_0d0a;
const BYTE_ORDER: u32 = 0x1a2b_3c4d;
/// Interface description block.
const INTERFACE: u32 = 1;
/// Simple packet block.
const SIMPLE: u32 = 3;
/// Interface statistics block.
const STATISTICS: u32 = 5;
/// Enhanced packet block.
const PACKET: u32 = 6;
/// Systemd journal export block.
const JOURNAL: u32 = 9;
/// What the older format begins with, by the unit of its times.
const PCAP_MICRO: u32 = 0xa1b2_c3d4;
const PCAP_NANO: u32 = 0xa1b2_3c4d;
/// `LINKTYPE_ETHERNET`.
pub const ETHERNET: u16 = 1;
/// Option `if_name`.
const IF_NAME: u16 = 2;
/// Option `if_tsresol`.
const IF_RESOLUTION: u16 = 9;
/// Option `if_tsoffset`.
const IF_OFFSET: u16 = 14;
/// Option `epb_flags`.
const EPB_FLAGS: u16 = 2;
/// Options `isb_ifdrop` and `isb_osdrop`.
const IF_DROPPED: u16 = 5;
const OS_DROPPED: u16 = 7;

/// The direction of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FrameDirection {
    /// The frame was received (`epb_flags` 01).
    In = 1,
    /// The frame was transmitted (`epb_flags` 10).
    Out = 2,
}

#[cfg(test)]
mod tests;
