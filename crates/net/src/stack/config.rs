//! The configuration of a stack, and the reasons to refuse one.

use std::net::Ipv4Addr;

use millstream_link::Subnet;
use millstream_wire::ethernet::Mac;

/// The treatment of the UDP checksum of a received datagram that the link has not verified.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ChecksumPolicy {
    /// It must be correct, or absent.
    Verify,
    /// As `Verify`, but a checksum that a sender on the same machine left to hardware is valid,
    /// too.
    #[default]
    AcceptPartial,
    /// It is not checked.
    Ignore,
}

/// The way of claiming an own address before it is used (RFC 5227, 2.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AddressClaim {
    /// The address is announced, and used at once.
    Announce,
    /// It is probed within a quarter of a second: for a cable between two machines.
    #[default]
    Quick,
    /// It is probed and announced with the times of RFC 5227: up to 7 s until it is used.
    Standard,
}

/// A network that is reached through another station.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Route {
    /// An address of the network.
    pub destination: Ipv4Addr,
    /// Bits of the network; 0 for the default route.
    pub prefix: u8,
    /// The forwarding station; on a network of ours.
    pub gateway: Ipv4Addr,
    /// Of routes with networks of the same size the one with the lowest metric is used.
    pub metric: u32,
}

impl Route {
    /// Returns the default route over `gateway`.
    #[must_use]
    pub fn default_via(gateway: Ipv4Addr) -> Route {
        Route { destination: Ipv4Addr::UNSPECIFIED, prefix: 0, gateway, metric: 0 }
    }
}

/// The configuration of a stack.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct StackConfig {
    /// Our Ethernet address.
    pub mac: Mac,
    /// Largest IP packet, bytes.
    pub mtu: usize,
    /// Our addresses, and the directly connected networks.
    pub addresses: Vec<Subnet>,
    /// Networks behind gateways.
    pub routes: Vec<Route>,
    /// Our VLAN. `None`: frames have no tag.
    pub vlan: Option<u16>,
    /// UDP checksums of received datagrams.
    pub checksum: ChecksumPolicy,
    /// Whether transmitted datagrams have a UDP checksum; IPv4 allows omitting it.
    pub udp_checksum: bool,
    /// UDP checksums are left to the link, with the sum of the pseudo-header in the checksum field.
    pub checksum_offload: bool,
    /// The kernel does not have the addresses, so the stack answers ARP and ICMP.
    pub own_addresses: bool,
    /// The way of claiming own addresses.
    pub claim: AddressClaim,
    /// The most neighbours in the table.
    pub neighbours_max: usize,
    /// The seed of the pauses between probes and of the first identification.
    pub seed: u64,
}

impl StackConfig {
    /// Creates the configuration of a stack without addresses, which shares those of the kernel.
    #[must_use]
    pub fn new(mac: [u8; 6], mtu: usize) -> StackConfig {
        StackConfig {
            mac: Mac(mac),
            mtu,
            addresses: Vec::new(),
            routes: Vec::new(),
            vlan: None,
            checksum: ChecksumPolicy::default(),
            udp_checksum: true,
            checksum_offload: false,
            own_addresses: false,
            claim: AddressClaim::default(),
            neighbours_max: 256,
            seed: 0,
        }
    }

    pub(super) fn check(&self) -> Result<(), StackError> {
        if !self.mac.is_station() {
            return Err(StackError::BadMac(self.mac));
        }
        if !(MTU_MIN..=MTU_MAX).contains(&self.mtu) {
            return Err(StackError::BadMtu(self.mtu));
        }
        if let Some(vlan) = self.vlan.filter(|vlan| !(1..=4094).contains(vlan)) {
            return Err(StackError::BadVlan(vlan));
        }
        if self.addresses.is_empty() {
            return Err(StackError::NoAddress);
        }
        for (index, subnet) in self.addresses.iter().enumerate() {
            let (address, prefix) = (subnet.address, subnet.prefix);
            check_prefix(address, prefix)?;
            let before = &self.addresses[..index];
            let again = before.iter().any(|other| other.address == address);
            if again || !is_station(address) || prefix == 0 || subnet.is_reserved(address) {
                return Err(StackError::BadAddress { address, prefix });
            }
        }
        for route in &self.routes {
            check_prefix(route.destination, route.prefix)?;
            let gateway = route.gateway;
            let mut networks = self.addresses.iter();
            if !networks.any(|own| own.contains(gateway) && !own.is_reserved(gateway)) {
                return Err(StackError::BadGateway(gateway));
            }
        }
        Ok(())
    }
}

/// Every IPv4 link carries packets of this length (RFC 791).
const MTU_MIN: usize = 68;
const MTU_MAX: usize = 65535;

fn check_prefix(address: Ipv4Addr, prefix: u8) -> Result<(), StackError> {
    if prefix > 32 { Err(StackError::BadPrefix { address, prefix }) } else { Ok(()) }
}

/// Whether an address can be that of a station on some network.
pub(super) fn is_station(address: Ipv4Addr) -> bool {
    let reserved = address.octets()[0] == 0 || address.octets()[0] >= 240;
    !reserved && !address.is_loopback() && !address.is_multicast()
}

/// The reason why a stack cannot be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StackError {
    /// The Ethernet address cannot be that of a station.
    #[error("{0} is not the Ethernet address of a single host: use an Ethernet interface")]
    BadMac(Mac),
    /// The MTU is too small or too large for IPv4.
    #[error(
        "the MTU is {0} bytes, but it must be 68 to 65535: set the MTU of the interface (ip link \
         set)"
    )]
    BadMtu(usize),
    /// VLAN identifiers go from 1 to 4094.
    #[error("VLAN {0} does not exist: the numbers go from 1 to 4094")]
    BadVlan(u16),
    /// There is no address.
    #[error(
        "the interface has no IPv4 address: give it one (ip addr add), or use address=A.B.C.D/24"
    )]
    NoAddress,
    /// The address cannot be that of a station, or was given twice.
    #[error(
        "{address}/{prefix} cannot be the address of this host: give the address of a single host \
         with the length of its network, once"
    )]
    BadAddress {
        /// The address.
        address: Ipv4Addr,
        /// Bits of its network.
        prefix: u8,
    },
    /// The prefix is longer than an address.
    #[error("{address}/{prefix}: the length of an IPv4 network is 0 to 32 bits")]
    BadPrefix {
        /// The address.
        address: Ipv4Addr,
        /// The given prefix length.
        prefix: u8,
    },
    /// The gateway is not on any of our networks.
    #[error("gateway {0} is not on a network of this host: give an address on one of them")]
    BadGateway(Ipv4Addr),
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAC: [u8; 6] = [2, 0, 0, 0, 0, 1];

    fn subnet(text: &str) -> Subnet {
        let (address, prefix) = text.split_once('/').unwrap();
        Subnet { address: address.parse().unwrap(), prefix: prefix.parse().unwrap() }
    }

    fn refused(change: impl FnOnce(&mut StackConfig)) -> String {
        let mut config = StackConfig::new(MAC, 1500);
        config.addresses.push(subnet("10.0.0.1/24"));
        assert_eq!(config.check(), Ok(()));
        change(&mut config);
        config.check().unwrap_err().to_string()
    }

    #[test]
    fn what_cannot_work_is_refused_with_advice() {
        for bad in [
            "127.0.0.1/8",
            "224.0.0.1/24",
            "10.0.0.0/24",
            "10.0.0.255/24",
            "10.0.0.1/24",
            "0.0.0.1/8",
            "255.255.255.255/32",
            "10.0.0.2/0",
        ] {
            let text = refused(|config| config.addresses.push(subnet(bad)));
            assert!(
                text.starts_with(&format!("{bad} cannot be the address of this host")),
                "{text}"
            );
        }
        let text = refused(|config| config.addresses.clear());
        assert!(text.contains("ip addr add"), "{text}");
        let text = refused(|config| config.addresses[0].prefix = 33);
        assert_eq!(text, "10.0.0.1/33: the length of an IPv4 network is 0 to 32 bits");
        let gateway = Ipv4Addr::new(10, 0, 1, 1);
        let text = refused(|config| config.routes.push(Route::default_via(gateway)));
        assert!(text.starts_with("gateway 10.0.1.1 is not on a network of this host"), "{text}");
        assert!(refused(|config| config.mtu = 67).contains("68 to 65535"));
        assert!(refused(|config| config.vlan = Some(4095)).contains("1 to 4094"));
        assert!(refused(|config| config.mac = Mac::BROADCAST).starts_with("ff:ff:ff:ff:ff:ff"));
    }

    #[test]
    fn small_networks_have_no_broadcast_address() {
        assert_eq!(subnet("10.0.0.1/24").broadcast(), Some(Ipv4Addr::new(10, 0, 0, 255)));
        assert_eq!(subnet("10.0.0.1/31").broadcast(), None);
        assert_eq!(subnet("10.0.0.1/32").broadcast(), None);
        assert!(subnet("10.0.0.1/32").contains(Ipv4Addr::new(10, 0, 0, 1)));
        assert!(!subnet("10.0.0.1/32").contains(Ipv4Addr::new(10, 0, 0, 2)));
        assert!(!subnet("10.0.0.1/31").is_reserved(Ipv4Addr::new(10, 0, 0, 0)));
    }
}
