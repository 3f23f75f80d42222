//! Datagrams and frames in and out, in batches.
//!
//! A [`frame::FrameLink`] carries Ethernet frames; the crate `net` makes ports of it. A
//! [`port::Port`] is a UDP endpoint whose receive half lends whole batches of datagrams out of its
//! own buffers. Links are listed in [`LINKS`] and chosen at run time by one string such as `udp` or
//! `udp:gro=off`:
//!
//! ```
//! use millstream_link::{open, port::PortOptions};
//! use std::net::{Ipv4Addr, SocketAddrV4};
//!
//! let any = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0);
//! let port = open("udp:gro=off", any, &PortOptions::default())?;
//! assert_ne!(port.local.port(), 0);
//! # Ok::<(), millstream_link::LinkError>(())
//! ```

mod buffers;
pub mod capture;
mod coarse;
mod device;
pub mod dpdk;
pub mod entry;
mod error;
pub mod fault;
pub mod frame;
pub mod interfaces;
pub mod launch;
mod loan;
pub mod loopback;
pub mod null;
pub mod options;
pub mod packet;
pub mod pcapng;
pub mod port;
pub mod queues;
pub mod registry;
pub mod replay;
pub mod rights;
mod spec;
mod subnet;
mod supply;
pub mod udp;
pub mod xdp;

use entry::LinkEntry;

pub use device::InterfaceState;
pub use error::LinkError;
pub use registry::{check_options, open, open_frames};
pub use spec::Spec;
pub use subnet::{ParseSubnetError, Subnet};

/// Every link of this build. A new link is its module above, with its entry, and a line here.
pub static LINKS: [&LinkEntry; 7] = [
    &udp::LINK,
    &xdp::LINK,
    &packet::LINK,
    &dpdk::LINK,
    &null::LINK,
    &replay::LINK,
    &loopback::LINK,
];
