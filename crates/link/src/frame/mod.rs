//! The frame seam: Ethernet frames in and out of one interface, in batches, without copies.
//!
//! A [`FrameLink`] is owned by exactly one thread. It lends received frames and free buffers as
//! [`Frame`]s, which are positions in its [`FrameMemory`]: whoever holds a `Frame` owns those bytes
//! until it hands the `Frame` back. Frames may travel to other threads (they are 32 bytes, and
//! `Send`); links do not.
//!
//! ```text
//!   pool ──reserve──▶ user ──transmit──▶ kernel (transmit, completion) ──▶ pool
//!   pool ──────────▶ kernel (fill) ──receive──▶ user ──give_back──▶ pool
//! ```
//!
//! A frame is in one of those places, and their [`FrameCounts`] always adds up to the same number.

mod counters;
mod memory;
mod steer;

use std::io;
use std::ops::RangeInclusive;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

use crate::LinkError;

pub use counters::{FrameCounts, LinkCounters};
pub use memory::{Frame, FrameMemory};
pub use steer::Steer;

/// How frames pass between the driver and the frame memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Mode {
    /// The device reads and writes the frame memory itself.
    ZeroCopy,
    /// The driver copies, before the kernel has made a socket buffer (AF_XDP native mode).
    NativeCopy,
    /// The kernel copies out of a socket buffer (AF_PACKET, AF_XDP generic mode).
    Generic,
    /// No kernel is involved.
    Memory,
}

impl Mode {
    /// The name that reports show.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::ZeroCopy => "zero-copy",
            Self::NativeCopy => "native copy",
            Self::Generic => "generic",
            Self::Memory => "memory",
        }
    }
}

/// What a frame link is, stated once when it is open.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct LinkInfo {
    /// The registered name of the link: `xdp`, `packet`.
    pub name: &'static str,
    /// The interface that it works on; links without hardware have none.
    pub interface: Option<String>,
    /// Its Ethernet address.
    pub mac: [u8; 6],
    /// Largest IP packet, bytes: the interface's MTU, without the Ethernet header.
    pub mtu: usize,
    /// How frames reach the frame memory.
    pub mode: Mode,
    /// What was probed and decided when it was opened, for people: one line.
    pub detail: String,
    /// Queues of the interface that this link serves.
    pub queues: usize,
    /// UDP ports that [`FrameLink::steer`] may name, where somebody else decides (`millstream
    /// host grant`); an empty list stands for all of them.
    pub udp_ports: Vec<RangeInclusive<u16>>,
    /// Frames that one call receives or transmits at most.
    pub batch_max: usize,
    /// Bytes of the longest frame that lies in one piece; a longer one comes in several.
    pub part_bytes_max: usize,
    /// Frames that wait below this link before a slow consumer loses some.
    pub receive_frames: usize,
    /// Buffers that received parts lie in, those that wait and those that are lent together; 0
    /// where there are no more than for [`LinkInfo::receive_frames`].
    pub receive_parts: usize,
    /// A received frame may be handed to [`FrameLink::transmit`] as it is.
    pub forwards: bool,
    /// Frames from the same machine may come with checksums that hardware was to complete
    /// (veth): the UDP checksum then holds only the sum of the pseudo-header.
    pub partial_checksums: bool,
    /// A checksum can be left to the link, its device, or (veth) nobody:
    /// [`Frame::complete_checksum`].
    pub completes_checksums: bool,
}

impl LinkInfo {
    /// The information of a link without hardware; real links fill in the rest.
    #[must_use]
    pub fn new(name: &'static str, mac: [u8; 6], mtu: usize) -> Self {
        Self {
            name,
            interface: None,
            mac,
            mtu,
            mode: Mode::Memory,
            detail: String::new(),
            queues: 1,
            udp_ports: Vec::new(),
            batch_max: 64,
            part_bytes_max: mtu + ETHERNET_BYTES_MAX,
            receive_frames: 0,
            receive_parts: 0,
            forwards: false,
            partial_checksums: false,
            completes_checksums: false,
        }
    }
}

/// Ethernet header with one VLAN tag, bytes (IEEE 802.3 and 802.1Q).
pub const ETHERNET_BYTES_MAX: usize = 18;

/// One interface's frames, in batches. Nothing here waits, except where it is said.
///
/// A frame longer than [`LinkInfo::part_bytes_max`] is a run of parts: every part but the last
/// says [`Frame::continues`]. Parts of one frame are never split over two calls.
pub trait FrameLink: Send {
    /// What the link is.
    fn info(&self) -> &LinkInfo;

    /// Where its frames lie.
    fn memory(&self) -> &Arc<FrameMemory>;

    /// Says which frames are wanted; all others stay with the kernel, undisturbed. Replaces what
    /// was said before. A link may deliver more than is wanted, never less.
    ///
    /// # Errors
    /// [`LinkError`] when the system refuses.
    fn steer(&mut self, steer: &Steer) -> Result<(), LinkError>;

    /// Appends the frames that are there, at most a batch; how many parts that was. Keeps the
    /// kernel supplied with buffers: nobody else needs to.
    ///
    /// # Errors
    /// `NetworkDown` while the interface is down (try again later), `NotFound` when it is gone.
    fn receive(&mut self, frames: &mut Vec<Frame>) -> io::Result<usize>;

    /// Takes back frames that came from [`FrameLink::receive`] or [`FrameLink::reserve`], in any
    /// order; `frames` is empty afterwards.
    fn give_back(&mut self, frames: &mut Vec<Frame>);

    /// Appends up to `count` free buffers to write frames into, each of
    /// [`LinkInfo::part_bytes_max`] bytes of room or more; how many there were.
    fn reserve(&mut self, frames: &mut Vec<Frame>, count: usize) -> usize;

    /// Queues frames for transmission, whole frames off the front of `frames` as far as there is
    /// room; how many parts it took. Their order is kept.
    ///
    /// # Errors
    /// As [`FrameLink::receive`]; what was not taken stays in `frames`.
    fn transmit(&mut self, frames: &mut Vec<Frame>) -> io::Result<usize>;

    /// Has queued frames sent, where the kernel must be told; takes back what has left.
    ///
    /// # Errors
    /// As [`FrameLink::receive`].
    fn flush(&mut self) -> io::Result<()>;

    /// Readable when there is something to receive; `None` where only a look can tell.
    fn poll_fd(&self) -> Option<BorrowedFd<'_>>;

    /// What happened since the link was opened.
    fn counters(&mut self) -> LinkCounters;

    /// What keeps wanted frames from this link and what to do about it, in one sentence; `None`
    /// while nothing is known to.
    fn explain(&mut self) -> Option<String>;

    /// Where its frames are now.
    fn census(&self) -> FrameCounts;
}

/// How to open a frame link. Every field has a sensible default.
#[derive(Debug, Clone)]
pub struct FrameOptions {
    /// Frames that should wait below the link before a slow consumer loses some.
    pub receive_frames: usize,
    /// Buffers for frames to transmit.
    pub transmit_frames: usize,
}

impl Default for FrameOptions {
    fn default() -> Self {
        Self { receive_frames: 4096, transmit_frames: 2048 }
    }
}
