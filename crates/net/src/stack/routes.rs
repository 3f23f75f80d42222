//! The choice of a route: longest prefix, then lowest metric.

use std::net::Ipv4Addr;

use super::Subnet;
use super::config::{Route, StackConfig};

/// The next hop of a destination.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NextHop {
    /// To this station on the wire, which may be a gateway.
    Station {
        /// The station whose Ethernet address is needed.
        next: Ipv4Addr,
        /// Our address on that network.
        source: Ipv4Addr,
    },
    /// To every station on the wire.
    Broadcast {
        /// Our address on that network.
        source: Ipv4Addr,
    },
}

/// The reason why nothing can be sent to a destination.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Unreachable {
    /// One of our own addresses.
    #[error(
        "the address belongs to this host: use link=udp, with which the kernel returns the \
         packets"
    )]
    Itself,
    /// 127.0.0.0/8.
    #[error("loopback addresses belong to the kernel: use link=udp")]
    Loopback,
    /// 0.0.0.0, a network's own address, or one that is not assigned.
    #[error("a host cannot have this address: give the address of a single host")]
    NoStation,
    /// 224.0.0.0/4.
    #[error("multicast addresses are not supported: give the address of a single host")]
    Multicast,
    /// Neither on the wire nor behind a gateway.
    #[error(
        "there is no route: the address is on no network of this host, and no gateway is set \
         (gateway=A.B.C.D)"
    )]
    NoRoute,
    /// The source address is not ours.
    #[error("the source address is not an address of this host")]
    NotOurs,
    /// Another station uses our address.
    #[error(
        "another host already uses the address of this link: choose another one \
         (address=A.B.C.D/24)"
    )]
    AddressTaken,
    /// The address was requested, and no station answered.
    #[error(
        "the other host did not answer ARP: check that it is on, and on the same network and VLAN"
    )]
    NoAnswer,
    /// The neighbour table is full of entries in use.
    #[error("too many neighbours are in use at the same time: close some connections")]
    TableFull,
}

/// The routes of a stack.
#[derive(Debug)]
pub(super) struct Routes {
    own: Vec<Subnet>,
    /// Best first.
    routes: Vec<(Subnet, Route)>,
}

impl Routes {
    pub(super) fn new(config: &StackConfig) -> Routes {
        let mut own = config.addresses.clone();
        // Stable: of equal networks the first address given is the source.
        own.sort_by_key(|subnet| std::cmp::Reverse(subnet.prefix));
        let network = |route: &Route| Subnet { address: route.destination, prefix: route.prefix };
        let mut routes: Vec<_> =
            config.routes.iter().map(|route| (network(route), *route)).collect();
        routes.sort_by_key(|(_, route)| (std::cmp::Reverse(route.prefix), route.metric));
        Routes { own, routes }
    }

    /// Returns the next hop to `to`.
    pub(super) fn way(&self, to: Ipv4Addr) -> Result<NextHop, Unreachable> {
        if let Some(broadcast) = self.special(to)? {
            return Ok(broadcast);
        }
        let own = self.own.iter().find(|subnet| subnet.contains(to));
        let route = self.routes.iter().find(|(network, _)| network.contains(to));
        match (own, route) {
            // A route to a part of our own network has precedence.
            (Some(own), Some((network, route))) if network.prefix > own.prefix => {
                self.through(route.gateway)
            }
            (Some(own), _) => Ok(NextHop::Station { next: to, source: own.address }),
            (None, Some((_, route))) => self.through(route.gateway),
            (None, None) => Err(Unreachable::NoRoute),
        }
    }

    /// Returns the next hop to a station on the wire, without regard to routes.
    pub(super) fn on_wire(&self, to: Ipv4Addr) -> Option<NextHop> {
        let own = self.own.iter().find(|subnet| subnet.contains(to))?;
        Some(NextHop::Station { next: to, source: own.address })
    }

    fn through(&self, gateway: Ipv4Addr) -> Result<NextHop, Unreachable> {
        let own = self.own.iter().find(|subnet| subnet.contains(gateway));
        let source = own.ok_or(Unreachable::NoRoute)?.address;
        if source == gateway {
            return Err(Unreachable::Itself);
        }
        Ok(NextHop::Station { next: gateway, source })
    }

    /// Returns the route of broadcast addresses, and an error for those to which nothing can be
    /// sent.
    fn special(&self, to: Ipv4Addr) -> Result<Option<NextHop>, Unreachable> {
        if to.is_broadcast() {
            let first = self.own.first().ok_or(Unreachable::NoRoute)?;
            return Ok(Some(NextHop::Broadcast { source: first.address }));
        }
        if to.is_loopback() {
            return Err(Unreachable::Loopback);
        }
        if to.is_multicast() {
            return Err(Unreachable::Multicast);
        }
        if !super::config::is_station(to) {
            return Err(Unreachable::NoStation);
        }
        if self.own.iter().any(|subnet| subnet.address == to) {
            return Err(Unreachable::Itself);
        }
        if let Some(subnet) = self.own.iter().find(|subnet| subnet.broadcast() == Some(to)) {
            return Ok(Some(NextHop::Broadcast { source: subnet.address }));
        }
        match self.own.iter().any(|subnet| subnet.is_reserved(to)) {
            true => Err(Unreachable::NoStation),
            false => Ok(None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> Ipv4Addr {
        text.parse().unwrap()
    }

    fn routes(own: &[&str], via: &[(&str, u8, &str, u32)]) -> Routes {
        let mut config = StackConfig::new([2, 0, 0, 0, 0, 1], 1500);
        for text in own {
            let (address, prefix) = text.split_once('/').unwrap();
            let (address, prefix) = (ip(address), prefix.parse().unwrap());
            config.addresses.push(Subnet { address, prefix });
        }
        for &(destination, prefix, gateway, metric) in via {
            let (destination, gateway) = (ip(destination), ip(gateway));
            config.routes.push(Route { destination, prefix, gateway, metric });
        }
        Routes::new(&config)
    }

    fn station(routes: &Routes, to: &str) -> (Ipv4Addr, Ipv4Addr) {
        match routes.way(ip(to)).unwrap() {
            NextHop::Station { next, source } => (next, source),
            way => panic!("{way:?}"),
        }
    }

    #[test]
    fn the_longest_prefix_wins_and_then_the_lowest_metric() {
        let routes = routes(
            &["10.0.0.1/24", "10.1.0.1/16"],
            &[
                ("0.0.0.0", 0, "10.0.0.254", 0),
                ("192.168.0.0", 16, "10.0.0.253", 5),
                ("192.168.0.0", 16, "10.1.0.253", 1),
                ("192.168.7.0", 24, "10.0.0.252", 9),
                ("10.0.0.128", 25, "10.1.0.9", 0),
            ],
        );
        let own = (ip("10.0.0.1"), ip("10.1.0.1"));
        assert_eq!(station(&routes, "10.0.0.2"), (ip("10.0.0.2"), own.0));
        assert_eq!(station(&routes, "10.1.200.2"), (ip("10.1.200.2"), own.1));
        assert_eq!(station(&routes, "8.8.8.8"), (ip("10.0.0.254"), own.0));
        assert_eq!(station(&routes, "192.168.1.1"), (ip("10.1.0.253"), own.1));
        assert_eq!(station(&routes, "192.168.7.1"), (ip("10.0.0.252"), own.0));
        assert_eq!(station(&routes, "10.0.0.200"), (ip("10.1.0.9"), own.1));
    }

    #[test]
    fn broadcast_addresses_go_to_everybody() {
        let routes = routes(&["10.0.0.1/24", "10.9.0.1/31"], &[]);
        let everybody = |to| routes.way(ip(to)).unwrap();
        assert_eq!(everybody("10.0.0.255"), NextHop::Broadcast { source: ip("10.0.0.1") });
        assert!(matches!(everybody("255.255.255.255"), NextHop::Broadcast { .. }));
        assert_eq!(station(&routes, "10.9.0.0").0, ip("10.9.0.0"));
    }

    #[test]
    fn each_refusal_has_its_reason() {
        let routes = routes(&["10.0.0.1/24"], &[]);
        for (to, why) in [
            ("10.0.0.1", Unreachable::Itself),
            ("127.0.0.1", Unreachable::Loopback),
            ("0.0.0.0", Unreachable::NoStation),
            ("10.0.0.0", Unreachable::NoStation),
            ("250.0.0.1", Unreachable::NoStation),
            ("224.0.0.1", Unreachable::Multicast),
            ("10.0.1.1", Unreachable::NoRoute),
        ] {
            assert_eq!(routes.way(ip(to)), Err(why), "{to}");
        }
        assert!(Unreachable::Itself.to_string().contains("link=udp"));
    }
}
