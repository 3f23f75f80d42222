//! The network state of the kernel: interfaces and what they count, addresses, routes, neighbours
//! and UDP sockets, in the network namespace of the thread that opens the connection (rtnetlink(7),
//! netlink(7)).
//!
//! The kernel is trusted, and still every length is checked: a message with a wrong length is an
//! error, never a panic.

mod address;
mod features;
mod interface;
mod message;
mod neighbour;
mod queue;
mod route;
mod socket;
mod statistics;
mod udp;

use std::io;

pub use address::NetlinkAddress;
pub use features::XdpFeatures;
pub use interface::{NetlinkInterface, XdpAttached, XdpMode};
pub use neighbour::Neighbour;
pub use queue::{LaunchQueue, PortShape, QueueOrder, Queued};
pub use route::{NetlinkRoute, RouteKind};
pub use statistics::LinkCounters;
pub use udp::{UdpSocketState, UdpSockets};

/// The reason why a request to the kernel failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NetlinkError {
    /// There is no interface of this name.
    #[error("there is no network interface \"{name}\"; there are: {known}")]
    NoInterface {
        /// The requested name.
        name: String,
        /// The existing names, comma separated.
        known: String,
    },
    /// The kernel has no such queue.
    #[error(
        "this kernel has no queue `{0}`: load the module sch_{0}, or measure under a kernel that \
         has it (millstream-lab lab guest --module sch_{0})"
    )]
    NoQueue(&'static str),
    /// The kernel refused.
    #[error("cannot {what}: {source}{}", hint(.source))]
    Refused {
        /// The request.
        what: &'static str,
        /// The kernel's error.
        source: io::Error,
    },
}

fn hint(source: &io::Error) -> &'static str {
    match source.kind() {
        io::ErrorKind::PermissionDenied => {
            "; this needs the capability CAP_NET_ADMIN: run the command with sudo"
        }
        io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => "; the kernel did not answer",
        _ => "",
    }
}

/// A connection to the kernel's routing tables. It belongs to the network namespace that the
/// calling thread was in when it was opened.
#[derive(Debug)]
pub struct Netlink {
    socket: socket::Socket,
}

impl Netlink {
    /// Opens a connection; needs no rights.
    ///
    /// # Errors
    /// [`NetlinkError::Refused`] when the process has no descriptor left.
    pub fn open() -> Result<Self, NetlinkError> {
        Ok(Self { socket: socket::Socket::open(None)? })
    }
}
