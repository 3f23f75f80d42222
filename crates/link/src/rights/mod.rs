//! Rights: every step of a link that needs a privilege, in one place.
//!
//! A link uses a [`Rights`] for its sockets, for the program on the interface and for changes to
//! the interface, and does everything else (memory, rings, bind, poll) by itself. The link cannot
//! see whether this process is privileged or a broker (`millstream host grant`) acts for it and
//! passes descriptors (unix(7), SCM_RIGHTS). Dropping the `Rights` of a link undoes what was done
//! through it.

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
use serde::{Deserialize, Serialize};

use crate::LINKS;
use crate::frame::Steer;

pub use broker::{Broker, errno};
pub use choice::{BROKER_VARIABLE, Choice, DEFAULT_BROKER, RightsOptions};
pub use direct::DirectSteps;
pub use locked::{lockable_bytes, raise as raise_lockable};
pub use open::open;
pub(crate) use open::ways_out;

/// The result of [`Rights::holder`] when this process acts by itself.
pub const DIRECT: &str = "direct";

/// A capability, and its name (capabilities(7)).
pub type Capability = (CapabilitySet, &'static str);

/// Packet sockets, and sockets on a device.
pub const NET_RAW: Capability = (CapabilitySet::NET_RAW, "CAP_NET_RAW");
/// Settings of interfaces.
pub const NET_ADMIN: Capability = (CapabilitySet::NET_ADMIN, "CAP_NET_ADMIN");
/// Programs in the kernel.
pub const BPF: Capability = (CapabilitySet::BPF, "CAP_BPF");
/// The further abilities of such programs.
pub const PERFMON: Capability = (CapabilitySet::PERFMON, "CAP_PERFMON");

/// The privileges that a link needs. It is declared in the link's own folder.
#[derive(Debug)]
pub struct Family {
    /// The name of the link, by which a broker grants it.
    pub link: &'static str,
    /// The address family of the link's sockets.
    pub sockets: AddressFamily,
    /// The capabilities with which a process can open the link by itself.
    pub capabilities: &'static [Capability],
    /// The link attaches an XDP program, which is impossible in a user namespace.
    pub programs: bool,
}

impl Family {
    /// Lists every family, in the order of the links.
    pub fn all() -> impl Iterator<Item = &'static Self> {
        LINKS.iter().filter_map(|entry| entry.rights)
    }

    /// Returns the family of the link of this name.
    #[must_use]
    pub fn of_link(name: &str) -> Option<&'static Self> {
        Self::all().find(|family| family.link == name)
    }
}

/// The place where the XDP program is to run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Hook {
    /// In the driver, or, where that is refused, in front of the kernel's stack.
    #[default]
    Auto,
    /// In the driver (native mode), or not at all.
    Driver,
    /// In front of the kernel's stack (generic mode).
    Generic,
}

/// The requested XDP program.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attach {
    /// The place where it is to run.
    pub hook: Hook,
    /// Frames may come in several parts (BPF_F_XDP_HAS_FRAGS).
    pub parts: bool,
    /// The most wanted frames per second and queue; 0: no limit.
    pub rate_max_hz: u32,
}

/// An attached XDP program, as seen by its user.
#[derive(Debug)]
pub struct AttachedProgram {
    /// The place where it runs: never [`Hook::Auto`].
    pub hook: Hook,
    /// Why it does not run in the driver, where that was tried.
    pub refused: Option<String>,
    /// The bpf link: the program is detached when its last holder closes it, in any way.
    pub link: OwnedFd,
    /// The map of its counters: one value, to be mapped and read.
    pub counters: OwnedFd,
}

/// The settings of a socket that polls its device itself (socket(7); needs CAP_NET_ADMIN).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct BusyPoll {
    /// The polling time of one wait, microseconds (SO_BUSY_POLL).
    pub busy_poll_us: u32,
    /// Frames per poll (SO_BUSY_POLL_BUDGET).
    pub budget: u32,
}

/// The privileged steps of one link on one interface. None of them is on the data path.
///
/// Every error has the errno of the step that failed ([`errno`]); a broker's errors have its
/// message.
pub trait Rights: Send {
    /// Returns the acting process: [`DIRECT`], or `broker PATH`.
    fn holder(&self) -> String;

    /// Opens a socket of the link's family, close-on-exec: AF_XDP not set up, AF_PACKET (SOCK_RAW)
    /// with protocol 0, which receives nothing before it is bound.
    ///
    /// # Errors
    /// The error of socket(2), or of the broker.
    fn socket(&mut self) -> io::Result<OwnedFd>;

    /// Allows this process to lock `bytes` more of memory (AF_XDP frame memory counts as locked,
    /// getrlimit(2) RLIMIT_MEMLOCK).
    ///
    /// # Errors
    /// The error of prlimit(2), or of the broker.
    fn allow_locked(&mut self, bytes: u64) -> io::Result<()>;

    /// Makes a socket poll its device while it waits.
    ///
    /// # Errors
    /// The error of setsockopt(2), or of the broker.
    fn busy_poll(&mut self, socket: BorrowedFd<'_>, how: BusyPoll) -> io::Result<()>;

    /// Loads the XDP program and attaches it to the interface; it passes every frame to the kernel
    /// until [`Rights::steer`]. Once per link.
    ///
    /// # Errors
    /// `AlreadyExists` or `ResourceBusy` when the interface has another program; otherwise the
    /// error of bpf(2) or of the broker.
    fn attach(&mut self, wanted: &Attach) -> io::Result<AttachedProgram>;

    /// Makes the program send wanted frames of `queue` to a socket that is bound to it.
    ///
    /// # Errors
    /// The error of bpf(2), or of the broker.
    fn watch(&mut self, queue: u32, socket: BorrowedFd<'_>) -> io::Result<()>;

    /// Returns the UDP ports that [`Rights::steer`] may name; an empty list stands for all of them.
    ///
    /// # Errors
    /// The error of the broker.
    fn udp_ports(&mut self) -> io::Result<Vec<RangeInclusive<u16>>>;

    /// Replaces the program's selection of wanted frames.
    ///
    /// # Errors
    /// The error of bpf(2), or of the broker; or too many ports or addresses.
    fn steer(&mut self, wanted: &Steer) -> io::Result<()>;

    /// Makes the interface use `count` queues until the link is closed; returns the previous
    /// number.
    ///
    /// # Errors
    /// The error of the driver (ethtool channels), or of the broker.
    fn channels(&mut self, count: u32) -> io::Result<u32>;
}
