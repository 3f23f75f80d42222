//! IPv4 routes (rtnetlink(7), RTM_GETROUTE).

use super::message::{
    NetlinkMessage, NetlinkRequest, attributes, attributes_after, ipv4, u16_at, u32_at,
};
use super::{Netlink, NetlinkError};
use serde::Serialize;
use std::net::Ipv4Addr;

/// Bytes of `struct rtmsg`, and of `struct rtnexthop`.
const FIXED_BYTES: usize = 12;
const NEXT_HOP_BYTES: usize = 8;
/// A gateway of another address family (`linux/rtnetlink.h`).
const RTA_VIA: u16 = 18;
/// The errors where a refusing route, or no route, matches.
const NO_WAY: [i32; 4] = [libc::ENETUNREACH, libc::EHOSTUNREACH, libc::EACCES, libc::EINVAL];

/// The action of a route on a packet.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum RouteKind {
    /// Forwards it.
    Unicast,
    /// Delivers it to this machine.
    Local,
    /// Broadcasts it.
    Broadcast,
    /// Sends it to a group.
    Multicast,
    /// Refuses or discards it.
    Refused,
}

/// One IPv4 route.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
pub struct NetlinkRoute {
    /// The destination network.
    pub destination: Ipv4Addr,
    /// Bits of the network part, 0 to 32.
    pub prefix: u8,
    /// The next router; `None` when the destination is on the interface's own network.
    pub gateway: Option<Ipv4Addr>,
    /// The number of the interface; `None` where no packet is sent.
    pub interface: Option<u32>,
    /// The preferred source address.
    pub source: Option<Ipv4Addr>,
    /// The metric; the lowest wins among equals.
    pub metric: u32,
    /// The action.
    pub kind: RouteKind,
}

impl Netlink {
    /// Returns the route that the kernel would choose to `destination` (longest match, then metric,
    /// policy rules), only through `interface` if one is given; `None` when there is no route.
    ///
    /// # Errors
    /// [`NetlinkError::Refused`] with the kernel's answer.
    pub fn route_to(
        &mut self,
        destination: Ipv4Addr,
        interface: Option<u32>,
    ) -> Result<Option<NetlinkRoute>, NetlinkError> {
        let mut fixed = [0; FIXED_BYTES];
        (fixed[0], fixed[1]) = (libc::AF_INET as u8, 32);
        let mut request = NetlinkRequest::new(libc::RTM_GETROUTE, libc::NLM_F_ACK, &fixed)
            .with(libc::RTA_DST, &destination.octets());
        if let Some(index) = interface {
            request = request.with(libc::RTA_OIF, &index.to_ne_bytes());
        }
        let hop = |message: &NetlinkMessage<'_>| hops(message).pop();
        let route = self.socket.ask_for("look up a route", &request, &NO_WAY, hop)?;
        Ok(route.filter(|route| route.kind != RouteKind::Refused))
    }

    /// Returns the routes of the main table in the kernel's order; one for each next hop where a
    /// route has several. Routes over IPv6 gateways are left out.
    ///
    /// # Errors
    /// [`NetlinkError::Refused`] with the kernel's answer.
    pub fn routes(&mut self) -> Result<Vec<NetlinkRoute>, NetlinkError> {
        let mut fixed = [0; FIXED_BYTES];
        (fixed[0], fixed[4]) = (libc::AF_INET as u8, libc::RT_TABLE_MAIN);
        let request = NetlinkRequest::new(libc::RTM_GETROUTE, libc::NLM_F_DUMP, &fixed);
        // An older kernel lists all tables for any request.
        let parse = |message: &NetlinkMessage<'_>| {
            (message.body.get(4) == Some(&libc::RT_TABLE_MAIN)).then(|| hops(message))
        };
        Ok(self.socket.ask("list the routes", &request, parse)?.concat())
    }
}

/// Returns the route of a message, once for each next hop; empty if it is not an IPv4 route.
fn hops(message: &NetlinkMessage<'_>) -> Vec<NetlinkRoute> {
    parse(message).unwrap_or_default()
}

fn parse(message: &NetlinkMessage<'_>) -> Option<Vec<NetlinkRoute>> {
    let body = message.body;
    if message.kind != libc::RTM_NEWROUTE || i32::from(*body.first()?) != libc::AF_INET {
        return None;
    }
    let mut route = NetlinkRoute {
        destination: Ipv4Addr::UNSPECIFIED,
        prefix: (*body.get(1)?).min(32),
        gateway: None,
        interface: None,
        source: None,
        metric: 0,
        kind: kind(*body.get(7)?),
    };
    let mut ways = Vec::new();
    for (kind, value) in attributes_after(body, FIXED_BYTES) {
        match kind {
            libc::RTA_DST => route.destination = ipv4(value)?,
            libc::RTA_PREFSRC => route.source = ipv4(value),
            libc::RTA_PRIORITY => route.metric = u32_at(value, 0)?,
            libc::RTA_GATEWAY => route.gateway = ipv4(value),
            libc::RTA_OIF => route.interface = u32_at(value, 0),
            libc::RTA_MULTIPATH => ways.extend(next_hops(value)),
            RTA_VIA => return None,
            _ => {}
        }
    }
    if ways.is_empty() {
        return Some(vec![route]);
    }
    let way = |(interface, gateway)| NetlinkRoute { interface: Some(interface), gateway, ..route };
    Some(ways.into_iter().map(way).collect())
}

/// Returns interface and gateway of each `struct rtnexthop`.
fn next_hops(mut bytes: &[u8]) -> impl Iterator<Item = (u32, Option<Ipv4Addr>)> {
    std::iter::from_fn(move || {
        let length = usize::from(u16_at(bytes, 0)?);
        let interface = u32_at(bytes, 4)?;
        let inside = bytes.get(NEXT_HOP_BYTES..length)?;
        let gateway = attributes(inside).find(|(kind, _)| *kind == libc::RTA_GATEWAY);
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((interface, gateway.and_then(|(_, value)| ipv4(value))))
    })
}

fn kind(code: u8) -> RouteKind {
    match code {
        libc::RTN_UNICAST => RouteKind::Unicast,
        libc::RTN_LOCAL => RouteKind::Local,
        libc::RTN_BROADCAST | libc::RTN_ANYCAST => RouteKind::Broadcast,
        libc::RTN_MULTICAST => RouteKind::Multicast,
        _ => RouteKind::Refused,
    }
}
