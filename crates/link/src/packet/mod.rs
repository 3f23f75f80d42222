//! Frame links over AF_PACKET: any interface, any driver, no program to load.
//!
//! ```text
//!   frame memory: │ receive ring (mapped) │ buffers to transmit │ segments │ scratch │
//! ```
//!
//! Received frames are lent out of the kernel's ring (`TPACKET_V2`: a slot for each frame, which is
//! readable at once) and go back to it in any order. Frames leave by `sendmmsg` out of the frame
//! memory.
//!
//! The kernel has two other rings, which this link does not use. `TPACKET_V3` packs frames into
//! blocks: full streams of small frames came up to twice as fast, but a single frame left its block
//! only after a timer, hundreds of milliseconds late next to spinning threads. Use AF_XDP for such
//! streams. `PACKET_TX_RING` costs one more copy, and was never faster than `sendmmsg`.
//!
//! - The kernel uses the whole ring in rotation. One that stays in the caches (`slots=64` for jumbo
//!   frames) halves a round trip; a long one, the default, outlasts pauses of the reader.
//! - A frame that the user holds keeps its slot occupied: once the kernel reaches it in the
//!   rotation, frames are lost (`rx_ring_full`) until it is given back.
//! - [`steer`](crate::frame::FrameLink::steer) attaches a filter to the socket. The kernel still
//!   processes every frame: this link only receives copies, even with `everything`. For addresses
//!   that the kernel has, its own UDP sockets must hold the ports, or it answers "port
//!   unreachable".
//! - Frames that this machine sends on the interface are not received.
//! - Checksums that hardware was to complete, and those that it checked, are marked in the frame.
//! - Trains of datagrams from a sender on the same machine are split.
//!
//! Only opening the sockets needs a privilege (CAP_NET_RAW), and [`crate::rights`] does it.
//! Sources: packet(7), `Documentation/networking/packet_mmap.rst`.

mod filter;
mod headers;
mod link;
mod options;
mod ring;
mod segmented;
mod socket;
mod tx_batch;
mod wake;

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use rustix::mm::MapFlags;

use crate::buffers::Buffers;
use crate::device::InterfaceState;
use crate::entry::{Factory, LinkEntry, Target, nothing_ahead};
use crate::frame::{
    Copies, ETHERNET_BYTES_MAX, Frame, FrameLink, FrameMemory, FrameOptions, LinkCounters,
    LinkInfo, Mode, Steer,
};
use crate::options::Options;
use crate::rights::{self, Family, RightsOptions};
use crate::{LinkError, Spec};
use link::{PacketLink, SendResult};
use options::PacketOptions;
use ring::{ReceiveRing, SlotLayout};
use tx_batch::Batch;

pub use headers::{BLOCK_MS, HeaderCapture, HeaderFilter, PassingFrame};

#[cfg(fuzzing)]
pub use segmented::exercise as exercise_train;

/// The largest train of datagrams, bytes: one IPv4 packet with its Ethernet header.
const TRAIN_BYTES_MAX: usize = 65_535 + ETHERNET_BYTES_MAX;

/// The entry of `packet`.
pub static LINK: LinkEntry = LinkEntry {
    name: "packet",
    about: "AF_PACKET: frames out of the kernel's rings, beside its stack",
    options: || [PacketOptions::describe(), RightsOptions::describe()].concat(),
    target: Target::Interface { outlook: |_| "rings shared with the kernel".to_owned() },
    factory: Factory::Frames(open),
    check: |spec| PacketOptions::from_spec(spec).map(drop),
    rights: Some(&RIGHTS),
    missing: None,
    foresee: nothing_ahead,
};

/// The rights to open packet sockets.
pub static RIGHTS: Family = Family {
    link: "packet",
    sockets: rustix::net::AddressFamily::PACKET,
    capabilities: &[rights::NET_RAW],
    programs: false,
};

/// Opens a packet link.
///
/// # Errors
/// [`LinkError::Interface`] with what to do, [`LinkError::BadOption`] for unusable options.
pub fn open(spec: &Spec, sizes: &FrameOptions) -> Result<Box<dyn FrameLink>, LinkError> {
    let (interface, options) = (spec.interface()?, PacketOptions::from_spec(spec)?);
    let device = InterfaceState::look(LINK.name, interface)?;
    let (by, _) = spec.split::<RightsOptions>()?;
    let mut rights = rights::open(&by, &RIGHTS, interface)?;
    let sockets = rights.socket().and_then(|rx| Ok((rx, rights.socket()?)));
    let (rx, tx) = sockets.map_err(|error| explain(&device, "open a socket", error))?;
    assemble(&options, &device, sizes, rx, tx)
        .map(|link| Box::new(link) as Box<dyn FrameLink>)
        .map_err(|(step, error)| explain(&device, step, error))
}

fn explain(device: &InterfaceState, step: &str, source: io::Error) -> LinkError {
    let hint = match source.raw_os_error() {
        Some(libc::ENOMEM) => {
            "the kernel has not enough memory for this ring: use fewer slots (slots=)"
        }
        Some(libc::EAFNOSUPPORT) => "this kernel has no packet sockets (CONFIG_PACKET)",
        Some(libc::ENODEV | libc::ENXIO) => {
            "the interface is gone: `ip link` lists the present ones"
        }
        Some(libc::EALREADY | libc::EINVAL) if step == "join the fanout group" => {
            "all links of a group must share it the same way, on the same interface"
        }
        _ => "see packet(7)",
    };
    LinkError::Interface {
        link: LINK.name,
        interface: device.interface.name.clone(),
        step: step.to_owned(),
        source,
        hint: hint.to_owned(),
    }
}

/// A failed step, and its error.
type Failed = (&'static str, io::Error);

/// Builds the link; this needs no privilege.
fn assemble(
    options: &PacketOptions,
    device: &InterfaceState,
    sizes: &FrameOptions,
    rx: OwnedFd,
    tx: OwnedFd,
) -> Result<PacketLink, Failed> {
    let longest = device.mtu() + ETHERNET_BYTES_MAX;
    let plan = RingSizes::new(options, sizes, longest);
    let memory = FrameMemory::anonymous(plan.bytes(), MapFlags::NORESERVE);
    let memory = Arc::new(memory.map_err(|error| ("frame memory", error))?);
    let ring = listen(rx.as_fd(), options, device, &plan, &memory)?;
    let wake = wake::Wake::new().map_err(|error| ("epoll", error))?;
    let transmit = speak(tx, options, device, &plan, &memory)?;
    // SAFETY: the plan keeps these three parts of the memory and the ring apart.
    let (buffers, segments, scratch) = unsafe {
        let buffers = |at, count| Buffers::new(Arc::clone(&memory), at, plan.stride, count);
        (
            buffers(plan.buffers_at(), plan.buffers),
            buffers(plan.segments_at(), plan.segments()),
            Frame::new(&memory, plan.scratch_at(), 0, TRAIN_BYTES_MAX as u32, 0),
        )
    };
    Ok(PacketLink {
        info: plan.info(options, device),
        memory,
        index: device.interface.index,
        wake,
        socket: rx,
        scratch: Some(scratch),
        ring,
        transmit,
        sent: SendResult::default(),
        buffers,
        segments,
        train: None,
        counters: LinkCounters::default(),
        done: Vec::with_capacity(plan.buffers + plan.slots.slots()),
        down: !device.interface.up,
        idle: 0,
        next_ask: std::time::Duration::ZERO,
    })
}

/// Sets up the receiving socket. It receives nothing before it is steered.
fn listen(
    fd: BorrowedFd<'_>,
    options: &PacketOptions,
    device: &InterfaceState,
    plan: &RingSizes,
    memory: &Arc<FrameMemory>,
) -> Result<ReceiveRing, Failed> {
    let number =
        |what, name, value| socket::set_number(fd, name, value).map_err(|error| (what, error));
    number("PACKET_VERSION", libc::PACKET_VERSION, socket::V2)?;
    number("PACKET_VNET_HDR", libc::PACKET_VNET_HDR, 1)?;
    number("PACKET_IGNORE_OUTGOING", libc::PACKET_IGNORE_OUTGOING, 1)?;
    let nothing = filter::program(&Steer::default());
    socket::attach(fd, &nothing).map_err(|error| ("SO_ATTACH_FILTER", error))?;
    number("PACKET_COPY_THRESH", libc::PACKET_COPY_THRESH, 1)?;
    socket::grow_queue(fd);
    let ring = ReceiveRing::new(fd, memory, plan.slots);
    let ring = ring.map_err(|error| ("PACKET_RX_RING", error))?;
    socket::bind(fd, device.interface.index, true).map_err(|error| ("bind", error))?;
    if let Some(fanout) = options.fanout {
        socket::join(fd, fanout).map_err(|error| ("join the fanout group", error))?;
    }
    Ok(ring)
}

/// Sets up the transmitting socket.
fn speak(
    fd: OwnedFd,
    options: &PacketOptions,
    device: &InterfaceState,
    plan: &RingSizes,
    memory: &Arc<FrameMemory>,
) -> Result<Batch, Failed> {
    let bypass = i32::from(options.qdisc_bypass);
    socket::set_number(fd.as_fd(), libc::PACKET_QDISC_BYPASS, bypass)
        .map_err(|error| ("PACKET_QDISC_BYPASS", error))?;
    socket::bind(fd.as_fd(), device.interface.index, false).map_err(|error| ("bind", error))?;
    socket::grow_flight(fd.as_fd(), plan.buffers * plan.stride as usize);
    Ok(Batch::new(fd, Arc::clone(memory), plan.buffers))
}

/// The sizes of rings and buffers, and their offsets in the memory.
struct RingSizes {
    longest: usize,
    slots: SlotLayout,
    buffers: usize,
    /// The distance of buffers, bytes.
    stride: u32,
}

impl RingSizes {
    fn new(options: &PacketOptions, sizes: &FrameOptions, longest: usize) -> Self {
        Self {
            longest,
            slots: SlotLayout::new(options.slots.unwrap_or(sizes.receive_frames), longest),
            buffers: sizes.transmit_frames.max(1),
            stride: longest.next_multiple_of(64) as u32,
        }
    }

    fn buffers_at(&self) -> u64 {
        self.slots.bytes() as u64
    }

    /// The number of buffers into which trains are split: as many as frames that the ports
    /// may hold, with room to spare. A batch without a buffer would stop all ports.
    fn segments(&self) -> usize {
        self.slots.slots()
    }

    fn segments_at(&self) -> u64 {
        self.buffers_at() + self.buffers as u64 * u64::from(self.stride)
    }

    fn scratch_at(&self) -> u64 {
        self.segments_at() + self.segments() as u64 * u64::from(self.stride)
    }

    fn bytes(&self) -> usize {
        self.scratch_at() as usize + TRAIN_BYTES_MAX
    }

    fn info(&self, options: &PacketOptions, device: &InterfaceState) -> LinkInfo {
        let slots = self.slots.slots();
        let queue = if options.qdisc_bypass { "past the queueing discipline" } else { "queued" };
        let mut info = LinkInfo::new(LINK.name, device.mac(), device.mtu());
        info.interface = Some(device.interface.name.clone());
        info.mode = Mode::Generic;
        info.copies = Copies { send: Some(1), receive: Some(1) };
        info.detail = format!("receives by {slots} slots (TPACKET_V2), sends by sendmmsg, {queue}");
        info.queues = device.receive_queues().map_or(1, |queues| queues as usize);
        info.part_bytes_max = self.longest;
        info.receive_frames = slots;
        info.forwards = true;
        info
    }
}
