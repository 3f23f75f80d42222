//! A writer of blocks, in this machine's byte order.

use super::{
    BYTE_ORDER, ETHERNET, FrameDirection, IF_NAME, IF_RESOLUTION, INTERFACE, PACKET, SECTION,
    STATISTICS,
};

/// Option `epb_flags`.
const EPB_FLAGS: u16 = 2;

/// Bytes of a packet block besides the frame: header, flags option, end of options, length again.
const PACKET_EXTRA: usize = 28 + 8 + 4 + 4;

/// The losses, for the statistics block.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Statistics {
    /// Frames that the link received (`isb_ifrecv`).
    pub received: u64,
    /// Frames that the link lost (`isb_ifdrop`).
    pub lost: u64,
    /// Frames that passed the link but are missing in the capture (`isb_osdrop`).
    pub uncaptured: u64,
}

/// Returns the beginning of a file: its section, and one Ethernet interface with nanosecond time
/// stamps.
pub(crate) fn head(interface: &str) -> Vec<u8> {
    let mut bytes = block(SECTION, |body| {
        body.extend(BYTE_ORDER.to_ne_bytes());
        body.extend([1u16, 0].map(u16::to_ne_bytes).concat());
        // The length of the section is left open.
        body.extend(u64::MAX.to_ne_bytes());
    });
    bytes.extend(block(INTERFACE, |body| {
        body.extend([ETHERNET, 0].map(u16::to_ne_bytes).concat());
        // No frame is truncated.
        body.extend(0u32.to_ne_bytes());
        option(body, IF_NAME, interface.as_bytes());
        option(body, IF_RESOLUTION, &[9]);
        option(body, 0, &[]);
    }));
    bytes
}

/// Returns the statistics block at the end of a file.
pub(crate) fn statistics(at_ns: u64, seen: Statistics) -> Vec<u8> {
    block(STATISTICS, |body| {
        body.extend(0u32.to_ne_bytes());
        body.extend(stamp(at_ns));
        for (code, count) in [(4, seen.received), (5, seen.lost), (7, seen.uncaptured)] {
            option(body, code, &count.to_ne_bytes());
        }
        option(body, 0, &[]);
    })
}

/// Returns the size of the block of a packet of `bytes` bytes.
pub(crate) fn packet_bytes(bytes: usize) -> usize {
    PACKET_EXTRA + bytes.next_multiple_of(4)
}

/// Writes the block of a packet, given in pieces, to the beginning of `to`, which has room.
pub(crate) fn packet<'a>(
    to: &mut [u8],
    at_ns: u64,
    direction: FrameDirection,
    bytes: usize,
    pieces: impl Iterator<Item = &'a [u8]>,
) {
    let total = packet_bytes(bytes);
    let (to, length) = (&mut to[..total], bytes as u32);
    to[..4].copy_from_slice(&PACKET.to_ne_bytes());
    to[4..8].copy_from_slice(&(total as u32).to_ne_bytes());
    to[8..12].fill(0);
    to[12..20].copy_from_slice(&stamp(at_ns));
    to[20..24].copy_from_slice(&length.to_ne_bytes());
    to[24..28].copy_from_slice(&length.to_ne_bytes());
    let mut at = 28;
    for piece in pieces {
        to[at..at + piece.len()].copy_from_slice(piece);
        at += piece.len();
    }
    debug_assert_eq!(at, 28 + bytes);
    let options = 28 + bytes.next_multiple_of(4);
    to[at..options].fill(0);
    to[options..options + 2].copy_from_slice(&EPB_FLAGS.to_ne_bytes());
    to[options + 2..options + 4].copy_from_slice(&4u16.to_ne_bytes());
    to[options + 4..options + 8].copy_from_slice(&(direction as u32).to_ne_bytes());
    to[options + 8..options + 12].fill(0);
    to[options + 12..].copy_from_slice(&(total as u32).to_ne_bytes());
}

/// Returns the time of a packet block that [`packet`] wrote, and its length in bytes.
pub(crate) fn stamp_ns(block: &[u8]) -> Option<(u64, usize)> {
    let word = |at: usize| {
        let bytes = block.get(at..at + 4)?;
        Some(u32::from_ne_bytes(bytes.try_into().ok()?))
    };
    let at_ns = u64::from(word(12)?) << 32 | u64::from(word(16)?);
    Some((at_ns, word(4)? as usize))
}

/// Returns a time in the format's encoding: the upper half first, in either byte order.
fn stamp(at_ns: u64) -> [u8; 8] {
    let [upper, lower] = [(at_ns >> 32) as u32, at_ns as u32].map(u32::to_ne_bytes);
    let mut bytes = [0; 8];
    bytes[..4].copy_from_slice(&upper);
    bytes[4..].copy_from_slice(&lower);
    bytes
}

fn block(kind: u32, fill: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut bytes = [kind.to_ne_bytes(), [0; 4]].concat();
    fill(&mut bytes);
    let total = ((bytes.len() + 4) as u32).to_ne_bytes();
    bytes[4..8].copy_from_slice(&total);
    bytes.extend(total);
    bytes
}

fn option(body: &mut Vec<u8>, code: u16, value: &[u8]) {
    body.extend([code, value.len() as u16].map(u16::to_ne_bytes).concat());
    body.extend(value);
    body.resize(body.len().next_multiple_of(4), 0);
}
