//! Rights: every step of a link that needs a privilege, named once.
//!
//! A link asks a [`Rights`] for its sockets, for the program on the interface and for changes to
//! the interface, and does everything else (memory, rings, bind, poll) by itself. Whether this
//! process is privileged or a broker (`millstream host grant`) acts for it and passes descriptors
//! (unix(7), SCM_RIGHTS), the link never learns. Dropping the `Rights` of a link undoes what was
//! done through it.

mod broker;
mod channel;
mod choice;
mod direct;
mod locked;
pub mod message;
mod open;
pub mod policy;
pub mod server;

use std::io;
use std::ops::RangeInclusive;
use std::os::fd::{BorrowedFd, OwnedFd};

use rustix::net::AddressFamily;
use rustix::thread::CapabilitySet;

use crate::frame::Steer;
use crate::registry::LINKS;

pub use broker::{Broker, errno};
pub use choice::{BROKER_VARIABLE, Choice, DEFAULT_BROKER, RightsOptions};
pub use direct::DirectSteps;
pub use locked::lockable_bytes;
pub use open::open;
pub(crate) use open::ways_out;

/// What [`Rights::holder`] says when this process acts by itself.
pub const DIRECT: &str = "direct";

/// A capability, and its name (capabilities(7)).
pub type Capability = (CapabilitySet, &'static str);

/// Packet sockets, and sockets on a device.
pub const NET_RAW: Capability = (CapabilitySet::NET_RAW, "CAP_NET_RAW");
/// Settings of interfaces.
pub const NET_ADMIN: Capability = (CapabilitySet::NET_ADMIN, "CAP_NET_ADMIN");
/// Programs in the kernel.
pub const BPF: Capability = (CapabilitySet::BPF, "CAP_BPF");
/// What such programs may do beyond the simplest.
pub const PERFMON: Capability = (CapabilitySet::PERFMON, "CAP_PERFMON");

/// The privileges that a link needs. It stands in the link's own folder.
#[derive(Debug)]
pub struct Family {
    /// The name of the link, by which a broker grants it.
    pub link: &'static str,
    /// The address family of the link's sockets.
    pub sockets: AddressFamily,
    /// What a process needs to open the link by itself.
    pub capabilities: &'static [Capability],
    /// The link attaches an XDP program, which nobody may in a user namespace.
    pub programs: bool,
}

impl Family {
    /// Every family, in the order of the links.
    pub fn all() -> impl Iterator<Item = &'static Self> {
        LINKS.iter().filter_map(|entry| entry.rights)
    }

    /// The family of the link of this name.
    #[must_use]
    pub fn of_link(name: &str) -> Option<&'static Self> {
        Self::all().find(|family| family.link == name)
    }
}

/// Where the XDP program is to run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Hook {
    /// In the driver, and where that is refused, in front of the kernel's stack.
    #[default]
    Auto,
    /// In the driver (native mode), or not at all.
    Driver,
    /// In front of the kernel's stack (generic mode).
    Generic,
}

/// The XDP program wanted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Attach {
    /// Where it is to run.
    pub hook: Hook,
    /// Frames may come in several parts (BPF_F_XDP_HAS_FRAGS).
    pub parts: bool,
    /// Wanted frames per second and queue that it lets pass at most; 0: no guard.
    pub rate_max_hz: u32,
}

/// An attached XDP program, seen by whoever uses it.
#[derive(Debug)]
pub struct AttachedProgram {
    /// Where it runs: never [`Hook::Auto`].
    pub hook: Hook,
    /// Why it does not run in the driver, where that was tried.
    pub refused: Option<String>,
    /// The bpf link: the program is detached when its last holder closes it, however that comes.
    pub link: OwnedFd,
    /// The map of its counters: one value, to be mapped and read.
    pub counters: OwnedFd,
}

/// How a socket should poll its device by itself (socket(7); needs CAP_NET_ADMIN).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BusyPoll {
    /// How long one wait polls, microseconds (SO_BUSY_POLL).
    pub busy_poll_us: u32,
    /// Frames per poll (SO_BUSY_POLL_BUDGET).
    pub budget: u32,
}

/// The privileged steps of one link on one interface. None of them is on the data path.
///
/// Every error has the errno of the step that failed ([`errno`]); those of a broker say what it
/// said.
pub trait Rights: Send {
    /// Who acts: [`DIRECT`], or `broker PATH`.
    fn holder(&self) -> String;

    /// A socket of the link's family, close-on-exec: AF_XDP not set up, AF_PACKET (SOCK_RAW)
    /// with protocol 0, which receives nothing before it is bound.
    ///
    /// # Errors
    /// What socket(2) reports, or the broker.
    fn socket(&mut self) -> io::Result<OwnedFd>;

    /// Has this process allowed to lock `bytes` more of memory (AF_XDP frame memory counts as
    /// locked, getrlimit(2) RLIMIT_MEMLOCK).
    ///
    /// # Errors
    /// What prlimit(2) reports, or the broker.
    fn allow_locked(&mut self, bytes: u64) -> io::Result<()>;

    /// Has a socket poll its device while it waits.
    ///
    /// # Errors
    /// What setsockopt(2) reports, or the broker.
    fn busy_poll(&mut self, socket: BorrowedFd<'_>, how: BusyPoll) -> io::Result<()>;

    /// Loads the XDP program and attaches it to the interface; it passes everything to the kernel
    /// until [`Rights::steer`]. Once per link.
    ///
    /// # Errors
    /// `AlreadyExists` or `ResourceBusy` when the interface has another program; what bpf(2)
    /// reports; or the broker.
    fn attach(&mut self, wanted: &Attach) -> io::Result<AttachedProgram>;

    /// Has the program give wanted frames of `queue` to a socket that is bound to it.
    ///
    /// # Errors
    /// What bpf(2) reports, or the broker.
    fn watch(&mut self, queue: u32, socket: BorrowedFd<'_>) -> io::Result<()>;

    /// The UDP ports that [`Rights::steer`] may name; an empty list stands for all of them.
    ///
    /// # Errors
    /// What the broker says.
    fn udp_ports(&mut self) -> io::Result<Vec<RangeInclusive<u16>>>;

    /// Has the program want other frames.
    ///
    /// # Errors
    /// What bpf(2) reports, or the broker; too many ports or addresses.
    fn steer(&mut self, wanted: &Steer) -> io::Result<()>;

    /// Has the interface use `count` queues until the link is closed; what it used before.
    ///
    /// # Errors
    /// What the driver reports (ethtool channels), or the broker.
    fn channels(&mut self, count: u32) -> io::Result<u32>;
}
