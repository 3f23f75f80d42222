//! The kernel's neighbour table: the Ethernet addresses of IPv4 addresses (rtnetlink(7),
//! RTM_GETNEIGH; arp(7)).

use super::message::{NetlinkMessage, NetlinkRequest, attributes_after, ipv4, mac, u16_at, u32_at};
use super::{Netlink, NetlinkError};
use serde::Serialize;
use std::net::Ipv4Addr;

/// Bytes of `struct ndmsg`.
const FIXED_BYTES: usize = 12;

/// An entry of the neighbour table.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
pub struct Neighbour {
    /// The number of the interface.
    pub interface: u32,
    /// The IPv4 address.
    pub address: Ipv4Addr,
    /// The Ethernet address, once it is known and while it may be used.
    pub mac: Option<[u8; 6]>,
    /// Whether the last request to it had no answer.
    pub failed: bool,
    /// Whether its address was confirmed some time ago: usable, but [`Netlink::use_neighbour`]
    /// should confirm it.
    pub stale: bool,
}

impl Netlink {
    /// Returns the kernel's entry of a neighbour; `None` without one. Needs no rights.
    ///
    /// # Errors
    /// [`NetlinkError::Refused`] with the kernel's answer.
    pub fn neighbour(
        &mut self,
        interface: u32,
        address: Ipv4Addr,
    ) -> Result<Option<Neighbour>, NetlinkError> {
        let request =
            NetlinkRequest::new(libc::RTM_GETNEIGH, libc::NLM_F_ACK, &fixed(interface, 0))
                .with(libc::NDA_DST, &address.octets());
        self.socket.ask_for("look up a neighbour", &request, &[libc::ENOENT], parse)
    }

    /// Makes the kernel resolve a neighbour, or confirm it if it is stale, as if it had a packet to
    /// send (NTF_USE). The call returns at once; [`Netlink::neighbour`] has the result later. Needs
    /// CAP_NET_ADMIN; without it, a datagram sent through a socket of the kernel has the same
    /// effect.
    ///
    /// # Errors
    /// [`NetlinkError::Refused`] with the kernel's answer.
    pub fn use_neighbour(&mut self, interface: u32, address: Ipv4Addr) -> Result<(), NetlinkError> {
        let flags = libc::NLM_F_ACK | libc::NLM_F_CREATE;
        let fixed = fixed(interface, libc::NTF_USE);
        let request = NetlinkRequest::new(libc::RTM_NEWNEIGH, flags, &fixed)
            .with(libc::NDA_DST, &address.octets());
        self.socket.ask("have a neighbour resolved", &request, |_| None::<()>).map(drop)
    }
}

fn fixed(interface: u32, flags: u8) -> Vec<u8> {
    [[libc::AF_INET as u8, 0, 0, 0], interface.to_ne_bytes(), [0, 0, flags, 0]].concat()
}

fn parse(message: &NetlinkMessage<'_>) -> Option<Neighbour> {
    let body = message.body;
    if message.kind != libc::RTM_NEWNEIGH || i32::from(*body.first()?) != libc::AF_INET {
        return None;
    }
    let state = u16_at(body, 8)?;
    let (mut address, mut hardware) = (None, None);
    for (kind, value) in attributes_after(body, FIXED_BYTES) {
        match kind {
            libc::NDA_DST => address = ipv4(value),
            libc::NDA_LLADDR => hardware = mac(value),
            _ => {}
        }
    }
    let usable = state & !(libc::NUD_INCOMPLETE | libc::NUD_FAILED) != 0;
    Some(Neighbour {
        interface: u32_at(body, 4)?,
        address: address?,
        mac: hardware.filter(|_| usable),
        failed: state & libc::NUD_FAILED != 0,
        stale: state & libc::NUD_STALE != 0,
    })
}
