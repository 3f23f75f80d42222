//! AF_XDP: frames of chosen UDP ports leave the kernel before its stack sees them; all others are
//! unaffected.
//!
//! ```text
//!   interface ─▶ our XDP program ─▶ wanted? ─▶ receive ring of the queue's socket ─▶ user
//!                     │ no                       ▲ fill ring ◀── pool ◀── completion ring ◀─┐
//!                     ▼                          │                 │                        │
//!               kernel's stack              frame memory      transmit ring ─▶ kernel ─▶ interface
//! ```
//!
//! Only the kernel is needed: `bpf` assembles the program, the rings are mapped here, and the
//! program is detached when this process is killed. The steps that need privileges are in
//! [`privileged`], and come through [`crate::rights`].
//!
//! A program sees VLAN tags only where they lie in the frame. A device that removes them (`ethtool
//! -k` shows `rx-vlan-offload: on`) must leave them in: `ethtool -K IF rxvlan off`.
//!
//! Sources: the kernel's `Documentation/networking/af_xdp.rst` and `linux/if_xdp.h`.

mod advice;
mod attached;
mod bpf;
mod foresee;
mod link;
mod open;
mod options;
mod outgoing;
mod plan;
mod pool;
pub mod privileged;
mod queue;
mod ring;
mod transmit;
#[cfg(test)]
mod vectors;
mod watchdog;

use crate::entry::{Factory, LinkEntry, Target};
use crate::frame::{FrameLink, FrameOptions};
use crate::options::Options;
use crate::rights::{self, Family, RightsOptions};
use crate::{LinkError, Spec};

pub use bpf::ProgramCounts;
pub use link::XdpLink;
pub use watchdog::{QueueRing, RingStall};

/// The entry of `xdp`.
pub static LINK: LinkEntry = LinkEntry {
    name: "xdp",
    about: "AF_XDP: frames of chosen UDP ports, before the kernel's stack sees them",
    options: || [options::XdpOptions::describe(), RightsOptions::describe()].concat(),
    target: Target::Interface { outlook: foresee::outlook },
    factory: Factory::Frames(open),
    check: |spec| options::XdpOptions::from_spec(spec).map(drop),
    rights: Some(&RIGHTS),
    missing: None,
    foresee: foresee::foresee,
};

/// The rights of the link, which a user namespace cannot give.
pub static RIGHTS: Family = Family {
    link: "xdp",
    sockets: rustix::net::AddressFamily::XDP,
    capabilities: &[rights::NET_RAW, rights::NET_ADMIN, rights::BPF, rights::PERFMON],
    programs: true,
};

/// Opens a link.
///
/// # Errors
/// [`LinkError`], which says what to do.
pub fn open(spec: &Spec, sizes: &FrameOptions) -> Result<Box<dyn FrameLink>, LinkError> {
    Ok(Box::new(XdpLink::open(spec, sizes)?))
}
