//! Frame links without hardware: `loop` receives what it transmits, and a [`pair`] has two ends
//! joined in memory, for tests; the ends may be on two threads.
//!
//! The sender copies each frame into an empty slot of the receiver's memory, as a kernel would.
//! Without an empty slot the frame is lost and counted as `rx_ring_full`, or waits (`full=wait`).
//!
//! ```
//! use millstream_link::frame::{FrameLink, FrameOptions};
//!
//! let mut link = millstream_link::open_frames("loop:mtu=1500", &FrameOptions::default())?;
//! let mut frames = Vec::new();
//! link.reserve(&mut frames, 1);
//! frames[0].set_len(60);
//! link.transmit(&mut frames)?;
//! assert_eq!(link.receive(&mut frames)?, 1);
//! assert_eq!(frames[0].len(), 60);
//! link.give_back(&mut frames);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod cable;
mod link;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use millstream_ring::{Beacon, spsc};
use rustix::mm::MapFlags;

use crate::buffers::Buffers;
use crate::entry::{Factory, LinkEntry, Target, nothing_ahead};
use crate::frame::{
    Copies, ETHERNET_BYTES_MAX, FrameLink, FrameMemory, FrameOptions, LinkCounters, LinkInfo,
};
use crate::options::{Options, Words, maybe, number};
use crate::{LinkError, Spec, options};
use link::{Filled, Receive, TransmitSlots};

pub use cable::{Cable, CableState};
pub use link::LoopLink;

options! {
    /// The options, parsed.
    #[derive(Debug, Clone, PartialEq, Eq)]
    struct Said {
        /// largest IP packet
        mtu: usize = 9000, number("bytes", 68..=65_535);
        /// longest piece of a frame; longer frames come in several
        part_bytes: Option<usize> = None, maybe(number("bytes", 64..=65_536));
        /// what happens when the receiver is slow
        full: bool = false, Words(&[("drop", false), ("wait", true)]);
    }
}

/// The entry of `loop`.
pub static LINK: LinkEntry = LinkEntry {
    name: "loop",
    about: "receives what it transmits, in memory",
    options: Said::describe,
    target: Target::None,
    factory: Factory::Frames(open),
    check: |spec| spec.read_alone::<Said>().map(drop),
    rights: None,
    missing: None,
    foresee: nothing_ahead,
};

/// The settings of a loop or a pair.
#[derive(Debug, Clone)]
pub struct LoopOptions {
    /// Largest IP packet, bytes.
    pub mtu: usize,
    /// The longest frame in one piece, bytes. `None`: every frame is in one piece.
    pub part_bytes_max: Option<usize>,
    /// Slots to receive into, and buffers to transmit from.
    pub frames: FrameOptions,
    /// A frame without a free slot waits with its sender instead of being lost.
    pub keep: bool,
}

impl Default for LoopOptions {
    fn default() -> Self {
        let frames = FrameOptions { receive_frames: 1024, transmit_frames: 1024 };
        Self { mtu: 9000, part_bytes_max: None, frames, keep: false }
    }
}

/// Opens a loop.
///
/// # Errors
/// [`LinkError::BadOption`], or [`LinkError::Setup`] where there is no memory.
pub fn open(spec: &Spec, frames: &FrameOptions) -> Result<Box<dyn FrameLink>, LinkError> {
    let Said { mtu, part_bytes, full } = spec.read_alone()?;
    let frames = frames.clone();
    let options = LoopOptions { mtu, part_bytes_max: part_bytes, frames, keep: full };
    Ok(Box::new(single(&options)?.0))
}

/// Creates one end that receives what it transmits, and its cable.
///
/// # Errors
/// [`LinkError::Setup`] where there is no memory.
pub fn single(options: &LoopOptions) -> Result<(LoopLink, Cable), LinkError> {
    let end = LoopbackEnd::new(options)?;
    let cable = Cable::new(vec![Arc::clone(&end.receive.bell)]);
    let LoopbackEnd { memory, receive, transmit } = end;
    Ok((join(options, [2, 0, 0, 0, 0, 1], memory, receive, transmit, cable.clone()), cable))
}

/// Creates two ends, each of which receives what the other transmits, and the cable between them.
///
/// # Errors
/// [`LinkError::Setup`] where there is no memory.
pub fn pair(options: &LoopOptions) -> Result<(LoopLink, LoopLink, Cable), LinkError> {
    let [a, b] = [LoopbackEnd::new(options)?, LoopbackEnd::new(options)?];
    let cable = Cable::new([&a, &b].map(|end| Arc::clone(&end.receive.bell)).to_vec());
    let [mac_a, mac_b] = [1, 2].map(|last| [2, 0, 0, 0, 0, last]);
    let one = join(options, mac_a, a.memory, a.receive, b.transmit, cable.clone());
    let two = join(options, mac_b, b.memory, b.receive, a.transmit, cable.clone());
    Ok((one, two, cable))
}

/// The receive slots of one end: its own half, and the half of its sender.
struct LoopbackEnd {
    memory: Arc<FrameMemory>,
    receive: Receive,
    transmit: TransmitSlots,
}

impl LoopbackEnd {
    fn new(options: &LoopOptions) -> Result<Self, LinkError> {
        let slots = options.frames.receive_frames.max(1);
        let slot_bytes = slot_bytes(options);
        let count = slots + options.frames.transmit_frames;
        let setup = |what| move |source| LinkError::Setup { what, source };
        let memory = FrameMemory::anonymous(count * slot_bytes as usize, MapFlags::NORESERVE);
        let memory = Arc::new(memory.map_err(setup("frame memory"))?);
        let bell = Arc::new(Beacon::new().map_err(|error| setup("eventfd")(error))?);
        let lost = Arc::new(AtomicU64::new(0));
        // Slots circulate through two channels. Each has room for all, so neither is ever full.
        let (filled_in, filled) = spsc::channel::<Filled>(slots);
        let (mut empty, empty_out) = spsc::channel(slots);
        let mut emptied: Vec<u32> = (0..slots as u32).collect();
        empty.push_batch(&mut emptied);
        let receive = Receive {
            filled,
            arrived: Vec::with_capacity(slots),
            empty,
            emptied,
            slots,
            slot_bytes,
            lost: Arc::clone(&lost),
            bell: Arc::clone(&bell),
        };
        let transmit = TransmitSlots {
            filled: filled_in,
            carried: Vec::with_capacity(slots),
            empty: empty_out,
            spare: Vec::with_capacity(slots),
            slot_bytes,
            memory: Arc::clone(&memory),
            lost,
            bell,
        };
        Ok(Self { memory, receive, transmit })
    }
}

fn join(
    options: &LoopOptions,
    mac: [u8; 6],
    memory: Arc<FrameMemory>,
    receive: Receive,
    transmit: TransmitSlots,
    cable: Cable,
) -> LoopLink {
    let mut info = LinkInfo::new(LINK.name, mac, options.mtu);
    info.copies = Copies { send: Some(1), receive: Some(0) };
    info.part_bytes_max = options.part_bytes_max.unwrap_or(info.part_bytes_max);
    let parts_each = (options.mtu + ETHERNET_BYTES_MAX).div_ceil(info.part_bytes_max);
    info.receive_frames = receive.slots / parts_each;
    info.forwards = true;
    info.detail = "memory, one copy".to_owned();
    let stride = slot_bytes(options);
    let first = receive.slots as u64 * u64::from(stride);
    let count = options.frames.transmit_frames;
    // SAFETY: the receive slots lie before `first`, and nothing else uses this memory.
    let buffers = unsafe { Buffers::new(Arc::clone(&memory), first, stride, count) };
    let counters = LinkCounters::default();
    LoopLink {
        info,
        memory,
        receive,
        transmit,
        buffers,
        cable,
        keep: options.keep,
        counters,
        lent: 0,
    }
}

/// Returns the size of a slot: the longest piece, in whole cache lines.
fn slot_bytes(options: &LoopOptions) -> u32 {
    let whole = options.mtu + ETHERNET_BYTES_MAX;
    (options.part_bytes_max.unwrap_or(whole)).next_multiple_of(64) as u32
}
