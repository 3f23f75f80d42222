//! A writer of blocks, in this machine's byte order.

use super::{
    BYTE_ORDER, EPB_FLAGS, FrameDirection, IF_NAME, IF_RESOLUTION, INTERFACE, JOURNAL, PACKET,
    SECTION, STATISTICS,
};

/// Bytes of a packet block besides the frame: header, flags option, end of options, length again.
const PACKET_EXTRA: usize = 28 + 8 + 4 + 4;

/// The losses, for the statistics block.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CaptureStatistics {
    /// Frames that the link received (`isb_ifrecv`).
    pub received: Option<u64>,
    /// Frames that the link lost (`isb_ifdrop`).
    pub lost: Option<u64>,
    /// Frames that passed the link but are missing in the capture (`isb_osdrop`).
    pub uncaptured: u64,
}

/// What a packet block says of a frame besides its bytes.
#[derive(Debug, Clone, Copy)]
pub struct FrameStamp {
    /// Its interface, by its position among the interfaces of the section.
    pub interface: u32,
    /// When it passed, nanoseconds since 1970.
    pub at_ns: u64,
    /// Its direction.
    pub direction: FrameDirection,
    /// Bytes of the whole frame, of which only the first may be there.
    pub whole_bytes: usize,
}

/// Returns the block that begins a file, or a further section of it.
#[must_use]
pub fn section() -> Vec<u8> {
    block(SECTION, |body| {
        body.extend(BYTE_ORDER.to_ne_bytes());
        body.extend([1u16, 0].map(u16::to_ne_bytes).concat());
        // The length of the section is left open.
        body.extend(u64::MAX.to_ne_bytes());
    })
}

/// Returns the block of an interface, whose frames begin as `link_type` says (`LINKTYPE_`) and have
/// nanosecond time stamps.
#[must_use]
pub fn interface(name: &str, link_type: u16) -> Vec<u8> {
    block(INTERFACE, |body| {
        body.extend([link_type, 0].map(u16::to_ne_bytes).concat());
        // Each block says how much of its frame is there.
        body.extend(0u32.to_ne_bytes());
        option(body, IF_NAME, name.as_bytes());
        option(body, IF_RESOLUTION, &[9]);
        option(body, 0, &[]);
    })
}

/// Returns a statistics block of an interface, which counts from the beginning of the capture.
#[must_use]
pub fn statistics(interface: u32, at_ns: u64, seen: CaptureStatistics) -> Vec<u8> {
    let CaptureStatistics { received, lost, uncaptured } = seen;
    block(STATISTICS, |body| {
        body.extend(interface.to_ne_bytes());
        body.extend(stamp(at_ns));
        for (code, count) in [(4, received), (5, lost), (7, Some(uncaptured))] {
            if let Some(count) = count {
                option(body, code, &count.to_ne_bytes());
            }
        }
        option(body, 0, &[]);
    })
}

/// Returns the block of an entry in the export format of systemd's journal, which Wireshark shows
/// between the packets: a message for people, and a further field. Neither contains a line break.
#[must_use]
pub fn journal_entry(at_ns: u64, message: &str, (name, value): (&str, &str)) -> Vec<u8> {
    debug_assert!(![message, name, value].iter().any(|text| text.contains('\n')));
    let at_us = at_ns / 1000;
    let text = format!("__REALTIME_TIMESTAMP={at_us}\nMESSAGE={message}\n{name}={value}\n");
    block(JOURNAL, |body| {
        body.extend(text.as_bytes());
        body.resize(body.len().next_multiple_of(4), 0);
    })
}

/// Returns the size of the block of a packet of `bytes` bytes.
#[must_use]
pub fn packet_bytes(bytes: usize) -> usize {
    PACKET_EXTRA + bytes.next_multiple_of(4)
}

/// Writes the block of a packet, of which `bytes` bytes are given in pieces, to the beginning of
/// `to`, which has room.
///
/// # Panics
/// Where `to` has no room.
pub fn packet<'a>(
    to: &mut [u8],
    of: FrameStamp,
    bytes: usize,
    pieces: impl Iterator<Item = &'a [u8]>,
) {
    let total = packet_bytes(bytes);
    let to = &mut to[..total];
    to[..4].copy_from_slice(&PACKET.to_ne_bytes());
    to[4..8].copy_from_slice(&(total as u32).to_ne_bytes());
    to[8..12].copy_from_slice(&of.interface.to_ne_bytes());
    to[12..20].copy_from_slice(&stamp(of.at_ns));
    to[20..24].copy_from_slice(&(bytes as u32).to_ne_bytes());
    to[24..28].copy_from_slice(&(of.whole_bytes as u32).to_ne_bytes());
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
    to[options + 4..options + 8].copy_from_slice(&(of.direction as u32).to_ne_bytes());
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
