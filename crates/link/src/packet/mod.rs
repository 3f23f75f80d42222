//! Frame links over AF_PACKET: any interface, any driver, no program to load.
//!
//! ```text
//!   frame memory: │ receive ring (mapped) │ buffers to transmit │ segments │ scratch │
//! ```
//!
//! Received frames are lent out of the kernel's ring and go back to it in any order. Frames leave
//! by `sendmmsg` out of the frame memory (`tx=batch`) or copied into a ring of the kernel
//! (`tx=ring`).
//!
//! - `ring=v2` (`auto` is the same) shows each frame at once and has a slot for each: a round trip
//!   takes microseconds. `ring=v3` packs frames into blocks. A single frame leaves its block only
//!   after `retire_ms`, and later when the kernel's timer (a soft interrupt) waits for a CPU:
//!   hundreds of milliseconds were seen next to spinning threads or on a busy machine. It is for
//!   full streams of small frames, which it receives up to twice as fast. A block is not read
//!   before the kernel hands it over: no other rule is documented.
//! - The kernel uses the whole ring in rotation. One that stays in the caches (`slots=64` for jumbo
//!   frames) halves a round trip; a long one, the default, outlasts pauses of the reader. Rings of
//!   blocks are limited to 8 MiB unless `blocks=` sets another limit.
//! - A frame that the user holds keeps its slot, or its whole block, occupied: once the kernel
//!   reaches it in the rotation, frames are lost (`rx_ring_full`) until it is given back.
//! - `tx=auto` is `batch`. A ring costs one more copy (two where the receiver is this machine).
//! - [`steer`](crate::frame::FrameLink::steer) attaches a filter to the socket. The kernel still
//!   processes every frame: this link only receives copies, even with `everything`. For addresses
//!   that the kernel has, its own UDP sockets must hold the ports, or it answers "port
//!   unreachable".
//! - Frames that this machine sends on the interface are not received.
//! - Checksums that hardware was to complete, and those that it checked, are marked in the frame.
//! - GSO batches of datagrams from a sender on the same machine are split.
//!
//! Only opening the sockets needs a privilege (CAP_NET_RAW), and [`crate::rights`] does it.
//! Sources: packet(7), `Documentation/networking/packet_mmap.rst`.

mod filter;
mod link;
mod mapped;
mod options;
mod ring2;
mod ring3;
mod seam;
mod segmented;
mod socket;
mod tx_batch;
mod tx_ring;
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
use link::{PacketLink, ReceiveRing, SendResult, TransmitRing};
use options::{PacketOptions, RingKind, TransmitKind};

#[cfg(fuzzing)]
pub use segmented::exercise as exercise_train;

/// The largest GSO batch of datagrams, bytes: one IPv4 packet with its Ethernet header.
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
            "the kernel has not enough memory for this ring: use fewer slots (slots=) or blocks \
             (blocks=)"
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
        interface: device.name.clone(),
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
    let longest = device.mtu + ETHERNET_BYTES_MAX;
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
        info: plan.info(options, device, &transmit),
        memory,
        index: device.index,
        wake,
        socket: rx,
        scratch: matches!(ring, ReceiveRing::V2(_)).then_some(scratch),
        ring,
        transmit,
        sent: SendResult::default(),
        buffers,
        segments,
        train: None,
        counters: LinkCounters::default(),
        done: Vec::with_capacity(plan.buffers + plan.receive_frames),
        down: !device.up,
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
    let version = if plan.v3.is_some() { socket::V3 } else { socket::V2 };
    number("PACKET_VERSION", libc::PACKET_VERSION, version)?;
    number("PACKET_VNET_HDR", libc::PACKET_VNET_HDR, 1)?;
    number("PACKET_IGNORE_OUTGOING", libc::PACKET_IGNORE_OUTGOING, 1)?;
    let nothing = filter::program(&Steer::default());
    socket::attach(fd, &nothing).map_err(|error| ("SO_ATTACH_FILTER", error))?;
    let ring = match plan.v3 {
        Some(shape) => ring3::Ring3::new(fd, memory, shape).map(ReceiveRing::V3),
        None => {
            number("PACKET_COPY_THRESH", libc::PACKET_COPY_THRESH, 1)?;
            socket::grow_queue(fd);
            ring2::Ring2::new(fd, memory, plan.v2).map(ReceiveRing::V2)
        }
    };
    let ring = ring.map_err(|error| ("PACKET_RX_RING", error))?;
    socket::bind(fd, device.index, true).map_err(|error| ("bind", error))?;
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
) -> Result<TransmitRing, Failed> {
    let bypass = i32::from(options.qdisc_bypass);
    socket::set_number(fd.as_fd(), libc::PACKET_QDISC_BYPASS, bypass)
        .map_err(|error| ("PACKET_QDISC_BYPASS", error))?;
    socket::bind(fd.as_fd(), device.index, false).map_err(|error| ("bind", error))?;
    socket::grow_flight(fd.as_fd(), plan.buffers * plan.stride as usize);
    if options.transmit == TransmitKind::Ring {
        let slots = plan.buffers.min(tx_ring::slots_max(plan.longest));
        let ring = tx_ring::TxRing::new(fd, slots, plan.longest);
        return ring.map(TransmitRing::Ring).map_err(|error| ("PACKET_TX_RING", error));
    }
    Ok(TransmitRing::Batch(tx_batch::Batch::new(fd, Arc::clone(memory), plan.buffers)))
}

/// The sizes of rings and buffers, and their offsets in the memory.
struct RingSizes {
    longest: usize,
    v2: ring2::SlotLayout,
    v3: Option<ring3::BlockLayout>,
    receive_frames: usize,
    buffers: usize,
    /// The distance of buffers, bytes.
    stride: u32,
}

impl RingSizes {
    fn new(options: &PacketOptions, sizes: &FrameOptions, longest: usize) -> Self {
        let v2 = ring2::SlotLayout::new(options.slots.unwrap_or(sizes.receive_frames), longest);
        let v3 = (options.ring == RingKind::V3).then(|| {
            let (bytes, retire_ms) = (options.block_bytes, options.retire_ms);
            let mut shape =
                ring3::BlockLayout::new(sizes.receive_frames, longest, bytes, retire_ms);
            shape.blocks = options.blocks.unwrap_or(shape.blocks);
            shape
        });
        let receive_frames = match v3 {
            Some(shape) => shape.frames(longest),
            None => v2.slots(),
        };
        let buffers = sizes.transmit_frames.max(1);
        Self {
            longest,
            v2,
            v3,
            receive_frames,
            buffers,
            stride: longest.next_multiple_of(64) as u32,
        }
    }

    fn buffers_at(&self) -> u64 {
        self.v3.map_or(self.v2.bytes(), ring3::BlockLayout::bytes) as u64
    }

    /// The number of buffers into which GSO batches are split: as many as frames that the ports
    /// may hold, with room to spare. A batch without a buffer would stop all ports.
    fn segments(&self) -> usize {
        self.receive_frames
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

    fn info(
        &self,
        options: &PacketOptions,
        device: &InterfaceState,
        transmit: &TransmitRing,
    ) -> LinkInfo {
        let ring = match self.v3 {
            Some(shape) => format!(
                "receives by {} blocks of {} KiB (TPACKET_V3, shown after {} ms)",
                shape.blocks,
                shape.block_bytes >> 10,
                shape.retire_ms
            ),
            None => format!("receives by {} slots (TPACKET_V2)", self.receive_frames),
        };
        let way = match transmit {
            TransmitRing::Batch(_) => "sends by sendmmsg",
            TransmitRing::Ring(_) => "sends by ring (PACKET_TX_RING)",
        };
        let queue = if options.qdisc_bypass { "past the queueing discipline" } else { "queued" };
        let mut info = LinkInfo::new(LINK.name, device.mac, device.mtu);
        info.interface = Some(device.name.clone());
        info.mode = Mode::Generic;
        // The kernel sends the pages of a transmit ring, and copies only a header out of it.
        let sends = u32::from(matches!(transmit, TransmitRing::Batch(_)));
        info.copies = Copies { send: Some(sends), receive: Some(1) };
        info.detail = format!("{ring}, {way}, {queue}");
        info.queues = device.receive_queues.map_or(1, |queues| queues as usize);
        info.part_bytes_max = self.longest;
        info.receive_frames = self.receive_frames;
        info.forwards = true;
        info
    }
}
