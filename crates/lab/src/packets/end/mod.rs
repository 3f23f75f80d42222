//! One end of a measured path: the same few motions over kernel sockets, ports and bare frames.

mod frames;
mod kernel;
mod port;
mod template;

use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};

use millstream_link::frame::{FrameOptions, LinkCounters};
use serde::{Deserialize, Serialize};

use super::plan::{Carriage, EndPlan};

pub use frames::FrameEnd;
pub use kernel::KernelEnd;
pub use port::PortEnd;
pub use template::{ETHERTYPE, PacketTemplate};

/// Bytes of Ethernet, IPv4 and UDP headers in front of a payload.
pub const HEADER_BYTES: usize = 14 + 20 + 8;

/// Packets handed over in one go, unless an end says otherwise.
pub const BATCH: usize = 64;

/// The number of a packet that is load and nothing else.
const LOAD: u64 = u64::MAX;

/// Longest sleep of one look, milliseconds: how soon a request to stop is heard.
const SLEEP_MS: i64 = 20;

/// Where an end can be reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndAddress {
    /// Ethernet address; zeros where none is needed.
    pub mac: [u8; 6],
    /// UDP address; the port is 0 where frames carry no IP.
    pub udp: SocketAddrV4,
}

/// How to look for packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Look {
    /// Come back at once.
    Glance,
    /// Sleep in the kernel until something is there, a few milliseconds at most.
    Sleep,
}

/// Which packets are sent back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EchoMode {
    /// Every one.
    All,
    /// Those with a number; load is dropped.
    Numbered,
}

/// One end of a path. Packets are all of the size that it was opened with.
pub trait PathEnd {
    /// Where it can be reached.
    fn address(&self) -> EndAddress;

    /// Sends to `peer` from now on.
    fn aim(&mut self, peer: &EndAddress);

    /// Packets that one call sends at most.
    fn batch(&self) -> usize {
        BATCH
    }

    /// Sends up to `count` packets of load (a batch at most); how many were taken.
    ///
    /// # Errors
    /// The link's; that it is full is none.
    fn send(&mut self, count: usize) -> io::Result<usize>;

    /// Sends one packet with a number; false when the link is full.
    ///
    /// # Errors
    /// The link's.
    fn send_numbered(&mut self, number: u64) -> io::Result<bool>;

    /// Takes what has come, without a look at it; how many packets that was.
    ///
    /// # Errors
    /// The link's.
    fn take(&mut self, look: Look) -> io::Result<usize>;

    /// Takes what has come and appends the numbers of those that have one.
    ///
    /// # Errors
    /// The link's.
    fn take_numbers(&mut self, look: Look, numbers: &mut Vec<u64>) -> io::Result<usize>;

    /// Sends what has come back to where it came from; how many came, and how many were sent.
    ///
    /// # Errors
    /// The link's.
    fn echo(&mut self, look: Look, which: EchoMode) -> io::Result<(usize, usize)>;

    /// System calls since it was opened, where the end or its link counts them.
    fn calls(&mut self) -> Option<u64>;

    /// What went wrong since it was opened: losses and the like, by name; only what happened.
    fn events(&mut self) -> Vec<(String, u64)>;
}

/// Opens the end of a plan. One that only sends (`receives` false) leaves all frames to the kernel.
///
/// # Errors
/// Why not, and what to do.
pub fn open(plan: &EndPlan, receives: bool) -> Result<Box<dyn PathEnd>, String> {
    let local = SocketAddrV4::new(plan.address, 0);
    let payload = plan.frame_bytes.saturating_sub(HEADER_BYTES).max(8);
    match plan.path {
        Carriage::Kernel => {
            let end = KernelEnd::open(local, payload, plan.busy_poll_us, plan.priority);
            end.map(boxed).map_err(|error| format!("cannot open a UDP socket: {error}"))
        }
        Carriage::Port => PortEnd::open(&plan.link, local, payload).map(boxed),
        Carriage::Frames | Carriage::IpFrames => {
            let link = millstream_link::open_frames(&plan.link, &FrameOptions::default());
            let link = link.map_err(|error| error.to_string())?;
            let udp = SocketAddrV4::new(plan.address, UDP_PORT);
            let template = match plan.path {
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

/// UDP port of frames that carry IP: nobody listens there.
const UDP_PORT: u16 = 47_001;

/// What went wrong on a link.
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

/// No address.
#[must_use]
pub fn nowhere() -> SocketAddrV4 {
    SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 0)
}
