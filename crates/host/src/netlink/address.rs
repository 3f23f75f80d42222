//! IPv4 addresses of interfaces (rtnetlink(7), RTM_GETADDR, RTM_NEWADDR).

use super::message::{NetlinkMessage, NetlinkRequest, attributes_after, ipv4, u32_at};
use super::{Netlink, NetlinkError};
use serde::Serialize;
use std::net::Ipv4Addr;

/// Bytes of `struct ifaddrmsg`.
const FIXED_BYTES: usize = 8;

/// One IPv4 address of one interface.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
pub struct NetlinkAddress {
    /// The number of the interface.
    pub interface: u32,
    /// The address.
    pub address: Ipv4Addr,
    /// Bits of the network part, 0 to 32.
    pub prefix: u8,
    /// The broadcast address, if one is set.
    pub broadcast: Option<Ipv4Addr>,
    /// Whether another address of the same network came first; the kernel prefers that one as a
    /// source.
    pub secondary: bool,
}

impl Netlink {
    /// Returns every IPv4 address of the namespace, in the order of the kernel.
    ///
    /// # Errors
    /// [`NetlinkError::Refused`] with the kernel's answer.
    pub fn addresses(&mut self) -> Result<Vec<NetlinkAddress>, NetlinkError> {
        let mut fixed = [0; FIXED_BYTES];
        fixed[0] = libc::AF_INET as u8;
        let request = NetlinkRequest::new(libc::RTM_GETADDR, libc::NLM_F_DUMP, &fixed);
        self.socket.ask("list the IPv4 addresses", &request, parse)
    }

    /// Gives an interface an address, with the route to its network. Needs CAP_NET_ADMIN.
    ///
    /// # Errors
    /// [`NetlinkError::Refused`] with the kernel's answer, also when it has the address already.
    pub fn add_address(
        &mut self,
        interface: u32,
        address: Ipv4Addr,
        prefix: u8,
    ) -> Result<(), NetlinkError> {
        let fixed = [[libc::AF_INET as u8, prefix, 0, 0], interface.to_ne_bytes()].concat();
        let flags = libc::NLM_F_ACK | libc::NLM_F_CREATE | libc::NLM_F_EXCL;
        let request = NetlinkRequest::new(libc::RTM_NEWADDR, flags, &fixed)
            .with(libc::IFA_LOCAL, &address.octets())
            .with(libc::IFA_ADDRESS, &address.octets());
        self.socket.ask("add an IPv4 address", &request, |_| None::<()>).map(drop)
    }
}

fn parse(message: &NetlinkMessage<'_>) -> Option<NetlinkAddress> {
    let body = message.body;
    if message.kind != libc::RTM_NEWADDR || i32::from(*body.first()?) != libc::AF_INET {
        return None;
    }
    let (prefix, flags, interface) = (*body.get(1)?, *body.get(2)?, u32_at(body, 4)?);
    let (mut local, mut peer, mut broadcast) = (None, None, None);
    for (kind, value) in attributes_after(body, FIXED_BYTES) {
        match kind {
            libc::IFA_LOCAL => local = ipv4(value),
            libc::IFA_ADDRESS => peer = ipv4(value),
            libc::IFA_BROADCAST => broadcast = ipv4(value),
            _ => {}
        }
    }
    // On point-to-point links IFA_ADDRESS is the other end's.
    let address = local.or(peer)?;
    let secondary = u32::from(flags) & libc::IFA_F_SECONDARY != 0;
    Some(NetlinkAddress { interface, address, prefix: prefix.min(32), broadcast, secondary })
}
