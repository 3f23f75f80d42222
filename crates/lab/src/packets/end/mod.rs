//! One end of a measured path: the same operations over kernel sockets, ports and bare frames.

mod frames;
mod kernel;
mod port;
mod template;

use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};

use millstream_link::frame::{FrameOptions, LinkCounters};
use serde::{Deserialize, Serialize};

use super::budget::PacketCopies;
use super::plan::{Carriage, EndPlan};

pub use frames::FrameEnd;
pub use kernel::KernelEnd;
pub use port::PortEnd;
pub use template::{ETHERTYPE, PacketTemplate};

/// Bytes of Ethernet, IPv4 and UDP headers in front of a payload.
pub const HEADER_BYTES: usize = 14 + 20 + 8;

/// Default number of packets handed over at once.
pub const BATCH: usize = 64;

/// The number of a packet that is only load.
const LOAD: u64 = u64::MAX;

/// Longest sleep of one poll, milliseconds: the delay of a stop request.
pub(super) const SLEEP_MS: i64 = 20;

/// The addresses of an end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndAddress {
    /// Ethernet address; zeros where none is needed.
    pub mac: [u8; 6],
    /// UDP address; the port is 0 where frames carry no IP.
    pub udp: SocketAddrV4,
}

/// The way to poll for packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Look {
    /// Return at once.
    Glance,
    /// Sleep in the kernel until a packet comes, a few milliseconds at most.
    Sleep,
}

/// The packets that are sent back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EchoMode {
    /// Every one.
    All,
    /// Those with a number; load is dropped.
    Numbered,
}

/// One end of a path. All packets have the size given at its opening.
pub trait PathEnd {
    /// Its addresses.
    fn address(&self) -> EndAddress;

    /// Sends to `peer` from now on.
    fn aim(&mut self, peer: &EndAddress);

    /// Largest number of packets of one call.
    fn batch(&self) -> usize {
        BATCH
    }

    /// Sends up to `count` packets of load (a batch at most); returns how many were taken.
    ///
    /// # Errors
    /// The link's; a full link is not an error.
    fn send(&mut self, count: usize) -> io::Result<usize>;

    /// Sends one packet with a number; returns false when the link is full.
    ///
    /// # Errors
    /// The link's.
    fn send_numbered(&mut self, number: u64) -> io::Result<bool>;

    /// Sends one packet with a number, after all that wait; returns how many packets the link took.
    ///
    /// # Errors
    /// The link's.
    fn send_among(&mut self, number: u64) -> io::Result<usize> {
        self.send_numbered(number).map(usize::from)
    }

    /// Takes the packets that came, without reading them; returns their number.
    ///
    /// # Errors
    /// The link's.
    fn take(&mut self, look: Look) -> io::Result<usize>;

    /// Takes the packets that came and appends the numbers of those that have one.
    ///
    /// # Errors
    /// The link's.
    fn take_numbers(&mut self, look: Look, numbers: &mut Vec<u64>) -> io::Result<usize>;

    /// Sends the packets that came back to their sender; returns how many came, and how many were
    /// sent.
    ///
    /// # Errors
    /// The link's.
    fn echo(&mut self, look: Look, which: EchoMode) -> io::Result<(usize, usize)>;

    /// System calls since its opening, where the end or its link counts them.
    fn calls(&mut self) -> Option<u64>;

    /// Copies of a packet's content.
    fn copies(&mut self) -> PacketCopies;

    /// Losses and other trouble since its opening, by name; without zeros.
    fn events(&mut self) -> Vec<(String, u64)>;
}

/// Opens the end of a plan. An end that only sends (`receives` false) leaves all frames to the
/// kernel.
///
/// # Errors
/// The reason, and the remedy.
pub fn open(plan: &EndPlan, receives: bool) -> Result<Box<dyn PathEnd>, String> {
    let local = SocketAddrV4::new(plan.address, 0);
    let payload = plan.frame_bytes.saturating_sub(HEADER_BYTES).max(8);
    let way = &plan.way;
    match way.path {
        Carriage::Kernel => {
            let end = KernelEnd::open(local, payload, way, plan.batch_max);
            end.map(boxed).map_err(|error| format!("cannot open a UDP socket: {error}"))
        }
        Carriage::Port => PortEnd::open(&way.link, local, payload).map(boxed),
        Carriage::Frames | Carriage::IpFrames => {
            let link = millstream_link::open_frames(&way.link, &FrameOptions::default());
            let link = link.map_err(|error| error.to_string())?;
            let udp = SocketAddrV4::new(plan.address, UDP_PORT);
            let template = match way.path {
                Carriage::IpFrames => PacketTemplate::ip(plan.frame_bytes, udp),
                _ => PacketTemplate::private(plan.frame_bytes, udp),
            };
            FrameEnd::new(link, template, receives).map(boxed)
        }
    }
}

fn boxed<E: PathEnd + 'static>(end: E) -> Box<dyn PathEnd> {
    Box::new(end)
}

/// UDP port of frames that carry IP; it has no listener.
const UDP_PORT: u16 = 47_001;

/// Packets of load of this size, back to back.
fn load(packets: usize, payload_bytes: usize) -> Vec<u8> {
    let mut load = vec![0; packets * payload_bytes];
    for payload in load.chunks_exact_mut(payload_bytes) {
        payload[..8].copy_from_slice(&LOAD.to_le_bytes());
    }
    load
}

/// The losses of a link.
fn link_events(counters: &LinkCounters) -> Vec<(String, u64)> {
    let is_event = |name: &str| {
        !matches!(name, "rx_frames" | "rx_bytes" | "tx_frames" | "tx_bytes" | "syscalls")
    };
    let happened = counters.named().filter(|(name, count)| *count > 0 && is_event(name));
    happened.map(|(name, count)| (name.to_owned(), count)).collect()
}

/// The number at the head of a payload, if it has one.
fn number(payload: &[u8]) -> Option<u64> {
    let number = u64::from_le_bytes(payload.get(..8)?.try_into().ok()?);
    (number != LOAD).then_some(number)
}

/// The unspecified address.
#[must_use]
pub fn nowhere() -> SocketAddrV4 {
    SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 0)
}
