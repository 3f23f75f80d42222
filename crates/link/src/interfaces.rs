//! The IPv4 addresses of this machine's network interfaces.

use std::io;
use std::net::Ipv4Addr;

use millstream_host::netlink::{Netlink, NetlinkAddress, NetlinkError, NetlinkInterface};

use crate::Subnet;

/// One IPv4 address of one interface that is up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InterfaceAddress {
    /// Its name, such as `eth0`.
    pub name: String,
    /// Its address.
    pub address: Ipv4Addr,
    /// The broadcast address of its network. `None` on loopback and point-to-point interfaces.
    pub broadcast: Option<Ipv4Addr>,
}

/// Returns every IPv4 address of every interface that is up.
///
/// # Errors
/// The kernel's answer to the question.
pub fn list() -> io::Result<Vec<InterfaceAddress>> {
    let ask = || -> Result<_, NetlinkError> {
        let mut netlink = Netlink::open()?;
        Ok((netlink.interfaces()?, netlink.addresses()?))
    };
    let (interfaces, addresses) = ask().map_err(io::Error::other)?;
    let of = |address: &NetlinkAddress| {
        let mut all = interfaces.iter().filter(|interface| interface.up);
        let interface = all.find(|interface| interface.index == address.interface)?;
        let (name, broadcast) = (interface.name.clone(), broadcast(interface, address));
        Some(InterfaceAddress { name, address: address.address, broadcast })
    };
    Ok(addresses.iter().filter_map(of).collect())
}

/// Returns the interface that is down and whose network this address is in: while it is down, the
/// kernel has no way there. `None` also where the kernel does not answer.
pub fn down_towards(address: Ipv4Addr) -> Option<String> {
    let mut netlink = Netlink::open().ok()?;
    let interfaces = netlink.interfaces().ok()?;
    down_of(&interfaces, &netlink.addresses().ok()?, address)
}

fn down_of(
    interfaces: &[NetlinkInterface],
    addresses: &[NetlinkAddress],
    address: Ipv4Addr,
) -> Option<String> {
    let leads = |one: &&NetlinkAddress| {
        Subnet { address: one.address, prefix: one.prefix }.contains(address)
    };
    addresses.iter().filter(leads).find_map(|own| {
        let of = |interface: &&NetlinkInterface| interface.index == own.interface && !interface.up;
        interfaces.iter().find(of).map(|interface| interface.name.clone())
    })
}

/// Returns the configured broadcast address; where there is none (`ip addr add` without `brd`), the
/// last address of the network.
fn broadcast(interface: &NetlinkInterface, address: &NetlinkAddress) -> Option<Ipv4Addr> {
    // Point-to-point interfaces have no Ethernet address.
    let has = interface.mac.is_some() && !interface.loopback;
    let network = Subnet { address: address.address, prefix: address.prefix };
    has.then(|| address.broadcast.or(network.broadcast())).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_is_listed_without_a_broadcast_address() {
        let all = list().unwrap();
        let lo = all.iter().find(|i| i.address.is_loopback()).expect("loopback is up");
        assert_eq!(lo.broadcast, None, "{lo:?}");
    }

    #[test]
    fn the_interface_that_is_down_is_found_by_its_network() {
        let mut netlink = Netlink::open().unwrap();
        let lo = netlink.interfaces().unwrap().into_iter().find(|one| one.loopback).unwrap();
        let card = |index, name: &str, up| NetlinkInterface {
            index,
            name: name.to_owned(),
            up,
            ..lo.clone()
        };
        let cards = [card(7, "eth0", true), card(8, "eth1", false)];
        let of = |interface, address: &str| NetlinkAddress {
            interface,
            address: address.parse().unwrap(),
            prefix: 24,
            broadcast: None,
            secondary: false,
        };
        let addresses = [of(7, "10.0.0.1"), of(8, "192.168.10.1")];
        let down = |address: &str| down_of(&cards, &addresses, address.parse().unwrap());
        assert_eq!(down("192.168.10.2").as_deref(), Some("eth1"));
        assert_eq!((down("192.168.11.2"), down("10.0.0.2")), (None, None));
    }

    #[test]
    fn a_broadcast_address_that_was_not_given_follows_from_the_network() {
        let mut netlink = Netlink::open().unwrap();
        let lo = netlink.interfaces().unwrap().into_iter().find(|one| one.loopback).unwrap();
        let card = NetlinkInterface { mac: Some([2; 6]), loopback: false, ..lo.clone() };
        let [address, told] = ["10.1.2.3", "10.1.2.255"].map(|a| a.parse().unwrap());
        let of = |broadcast| NetlinkAddress {
            interface: card.index,
            address,
            prefix: 22,
            broadcast,
            secondary: false,
        };
        assert_eq!(broadcast(&card, &of(None)), Some(Ipv4Addr::new(10, 1, 3, 255)));
        assert_eq!(broadcast(&card, &of(Some(told))), Some(told));
        let tunnel = NetlinkInterface { mac: None, ..card.clone() };
        assert_eq!((broadcast(&lo, &of(None)), broadcast(&tunnel, &of(None))), (None, None));
    }
}
