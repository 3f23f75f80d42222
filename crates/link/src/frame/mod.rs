//! The frame interface: Ethernet frames in and out of one network interface, in batches, without
//! copies.
//!
//! Exactly one thread owns a [`FrameLink`]. It lends received frames and free buffers as
//! [`Frame`]s, which are positions in its [`FrameMemory`]: the holder of a `Frame` owns those bytes
//! until it returns the `Frame`. Frames may travel to other threads (they are 32 bytes, and
//! `Send`); links may not.
//!
//! ```text
//!   pool ──reserve──▶ user ──transmit──▶ kernel (transmit, completion) ──▶ pool
//!   pool ──────────▶ kernel (fill) ──receive──▶ user ──give_back──▶ pool
//! ```
//!
//! A frame is in one of those places, and the sum of their [`FrameCounts`] is constant.

mod copies;
mod counters;
mod memory;
mod steer;

use std::io;
use std::ops::RangeInclusive;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

use crate::LinkError;

pub use copies::Copies;
pub use counters::{FrameCounts, LinkCounters};
pub use memory::{Frame, FrameMemory};
pub use steer::Steer;

/// The way of frames between the driver and the frame memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Mode {
    /// The device reads and writes the frame memory itself.
    ZeroCopy,
    /// The driver copies, before the kernel has made a socket buffer (AF_XDP native mode).
    NativeCopy,
    /// The kernel copies out of a socket buffer (AF_PACKET, AF_XDP generic mode).
    Generic,
    /// The kernel is not involved.
    Memory,
}

impl Mode {
    /// The name in reports.
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

/// The properties of a frame link, constant after it is opened.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct LinkInfo {
    /// The registered name of the link: `xdp`, `packet`.
    pub name: &'static str,
    /// The interface that it works on. `None` for links without hardware.
    pub interface: Option<String>,
    /// Its Ethernet address.
    pub mac: [u8; 6],
    /// Largest IP packet, bytes: the interface's MTU, without the Ethernet header.
    pub mtu: usize,
    /// How frames reach the frame memory.
    pub mode: Mode,
    /// Copies of a packet's content.
    pub copies: Copies,
    /// The results of probing and the decisions when it was opened, in one line for people.
    pub detail: String,
    /// Queues of the interface that this link serves.
    pub queues: usize,
    /// UDP ports that [`FrameLink::steer`] may name, where a broker decides (`millstream host
    /// grant`); an empty list stands for all of them.
    pub udp_ports: Vec<RangeInclusive<u16>>,
    /// The most frames that one call receives or transmits.
    pub batch_max: usize,
    /// The longest frame in one piece, bytes; a longer one comes in several parts.
    pub part_bytes_max: usize,
    /// Frames that wait below this link before a slow consumer loses some.
    pub receive_frames: usize,
    /// Buffers that received parts lie in, waiting and lent ones together; 0 where there are no
    /// more than for [`LinkInfo::receive_frames`].
    pub receive_parts: usize,
    /// Whether a received frame may be passed to [`FrameLink::transmit`] unchanged.
    pub forwards: bool,
    /// Frames from the same machine may come with checksums that hardware was to complete
    /// (veth): the UDP checksum then holds only the sum of the pseudo-header.
    pub partial_checksums: bool,
    /// A checksum can be left to the link or its device; over veth it is never computed:
    /// [`Frame::complete_checksum`].
    pub completes_checksums: bool,
}

impl LinkInfo {
    /// Creates the information of a link without hardware; real links fill in the rest.
    #[must_use]
    pub fn new(name: &'static str, mac: [u8; 6], mtu: usize) -> Self {
        Self {
            name,
            interface: None,
            mac,
            mtu,
            mode: Mode::Memory,
            copies: Copies::default(),
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

/// One interface's frames, in batches. No method waits, except where its description says so.
///
/// A frame longer than [`LinkInfo::part_bytes_max`] is a run of parts: [`Frame::continues`] is true
/// for every part but the last. Parts of one frame are never split over two calls.
pub trait FrameLink: Send {
    /// Returns the link's properties.
    fn info(&self) -> &LinkInfo;

    /// Returns the memory of its frames.
    fn memory(&self) -> &Arc<FrameMemory>;

    /// Selects the wanted frames; all others stay with the kernel, undisturbed. Replaces the
    /// previous selection. A link may deliver more than is wanted, never less.
    ///
    /// # Errors
    /// [`LinkError`] when the system refuses.
    fn steer(&mut self, steer: &Steer) -> Result<(), LinkError>;

    /// Appends the waiting frames, at most a batch, and returns the number of parts. Refills the
    /// kernel's receive buffers, so no other call has to.
    ///
    /// # Errors
    /// `NetworkDown` while the interface is down (try again later), `NotFound` when it is gone.
    fn receive(&mut self, frames: &mut Vec<Frame>) -> io::Result<usize>;

    /// Takes back frames that came from [`FrameLink::receive`] or [`FrameLink::reserve`], in any
    /// order; `frames` is empty afterwards.
    fn give_back(&mut self, frames: &mut Vec<Frame>);

    /// Appends up to `count` free buffers to write frames into, each with room for
    /// [`LinkInfo::part_bytes_max`] bytes or more. Returns their number.
    fn reserve(&mut self, frames: &mut Vec<Frame>, count: usize) -> usize;

    /// Queues frames for transmission: whole frames off the front of `frames`, in order, as far as
    /// there is room. Returns the number of parts taken.
    ///
    /// # Errors
    /// As [`FrameLink::receive`]; parts that were not taken stay in `frames`.
    fn transmit(&mut self, frames: &mut Vec<Frame>) -> io::Result<usize>;

    /// Starts the transmission of queued frames, where the kernel needs a call; reclaims frames
    /// that have left.
    ///
    /// # Errors
    /// As [`FrameLink::receive`].
    fn flush(&mut self) -> io::Result<()>;

    /// A descriptor that is readable when there is something to receive. `None` where only a poll
    /// can show that.
    fn poll_fd(&self) -> Option<BorrowedFd<'_>>;

    /// Returns the counts of events since the link was opened.
    fn counters(&mut self) -> LinkCounters;

    /// Explains in one sentence why wanted frames do not reach this link and what to do about it.
    /// `None` when no reason is known.
    fn explain(&mut self) -> Option<String> {
        None
    }

    /// Returns the number of its frames in each place.
    fn census(&self) -> FrameCounts;
}

/// The sizes of a frame link. Every field has a sensible default.
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
