//! The policy of a broker: the users, and what they are granted.

use std::net::Ipv4Addr;
use std::ops::RangeInclusive;

use super::Family;
use crate::Subnet;
use crate::frame::Steer;

/// The identity of a client, verified by the kernel (unix(7), SO_PEERCRED and SO_PEERGROUPS).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PeerIdentity {
    /// The process that connected.
    pub pid: i32,
    /// Its user.
    pub uid: u32,
    /// Its groups.
    pub groups: Vec<u32>,
}

/// Returns the network of a text: `10.0.0.0/24`, or an address alone.
///
/// # Errors
/// That the text is neither.
pub fn network(text: &str) -> Result<Subnet, String> {
    let alone = || format!("{text}/32").parse();
    text.parse().or_else(|_| alone()).map_err(|_| {
        format!(
            "{text} is not an address and not a network: write for example 10.0.0.2 or 10.0.0.0/24"
        )
    })
}

/// The grants of a broker, and the users who get them.
#[derive(Debug, Clone)]
pub struct GrantPolicy {
    /// Granted users (besides root).
    pub users: Vec<u32>,
    /// Granted groups.
    pub groups: Vec<u32>,
    /// Interfaces, by name.
    pub interfaces: Vec<String>,
    /// Links.
    pub families: Vec<&'static Family>,
    /// UDP ports that may be steered to a user.
    pub ports: Vec<RangeInclusive<u16>>,
    /// Addresses that a link may serve in addition to those of this machine.
    pub addresses: Vec<Subnet>,
    /// Whether all frames of the interface, and any Ethernet type, may be taken from the kernel.
    pub everything: bool,
    /// Whether the number of queues may be changed.
    pub channels: bool,
    /// The most memory that one process may lock, bytes.
    pub locked_bytes_max: u64,
}

/// The ports that any user may bind.
pub const ORDINARY_PORTS: RangeInclusive<u16> = 1024..=u16::MAX;

impl GrantPolicy {
    /// Creates a policy that grants `families` on `interface` to root only.
    #[must_use]
    pub fn new(interface: &str, families: &[&'static Family]) -> Self {
        Self {
            users: Vec::new(),
            groups: Vec::new(),
            interfaces: vec![interface.to_owned()],
            families: families.to_vec(),
            ports: vec![ORDINARY_PORTS],
            addresses: Vec::new(),
            everything: false,
            channels: false,
            locked_bytes_max: 1 << 30,
        }
    }

    /// Checks whether a client may send requests at all.
    ///
    /// # Errors
    /// The reason for the refusal.
    pub fn admits(&self, peer: &PeerIdentity) -> Result<(), String> {
        let member = || peer.groups.iter().any(|group| self.groups.contains(group));
        if peer.uid == 0 || self.users.contains(&peer.uid) || member() {
            return Ok(());
        }
        Err(format!(
            "the broker grants nothing to user {}: start it with --user for this user",
            peer.uid
        ))
    }

    /// Returns the family of the link, which says what it needs, if the link is granted on the
    /// interface.
    ///
    /// # Errors
    /// The reason for the refusal.
    pub fn granted_family(&self, link: &str, interface: &str) -> Result<&'static Family, String> {
        if !self.interfaces.iter().any(|granted| granted == interface) {
            let granted = self.interfaces.join(", ");
            return Err(format!(
                "the broker does not grant the interface {interface}, only {granted}"
            ));
        }
        let found = self.families.iter().find(|family| family.link == link).copied();
        found.ok_or_else(|| {
            let granted: Vec<_> = self.families.iter().map(|family| family.link).collect();
            let granted = granted.join(", ");
            // The client's text is untrusted.
            let link = link.escape_debug();
            format!(
                "the broker does not grant the link {link}, only {granted}: start it with \
                 another --link"
            )
        })
    }

    /// Checks whether frames may be taken from the kernel. `kernel` are the addresses of the
    /// machine, and the broadcast addresses of its networks.
    ///
    /// # Errors
    /// The reason for the refusal.
    pub fn steer(&self, wanted: &Steer, kernel: &[Ipv4Addr]) -> Result<(), String> {
        if !self.everything && (wanted.everything || !wanted.ethertypes.is_empty()) {
            let what = "all frames of an interface, or other Ethernet types, are";
            return Err(format!("{what} not granted; grant them with --everything"));
        }
        let granted = |port: &&u16| self.ports.iter().any(|range| range.contains(port));
        if let Some(port) = wanted.udp_ports.iter().find(|port| !granted(port)) {
            let ranges = self.ports.iter().map(|r| format!("{}-{}", r.start(), r.end()));
            let ranges = ranges.collect::<Vec<_>>().join(", ");
            return Err(format!(
                "the broker does not grant UDP port {port}, only {ranges}: use one of these, or \
                 start the broker with another --port"
            ));
        }
        let shared = |address: &&Ipv4Addr| {
            let limited = address.is_unspecified() || address.is_broadcast();
            wanted.own_addresses && (limited || address.is_multicast() || address.is_loopback())
        };
        if let Some(address) = wanted.addresses.iter().find(shared) {
            return Err(format!(
                "{address} is not the address of a single host, so a link cannot have it"
            ));
        }
        let of_kernel = |address: &&Ipv4Addr| wanted.own_addresses && kernel.contains(address);
        if let Some(address) = wanted.addresses.iter().find(of_kernel) {
            return Err(format!(
                "{address} is already an address of this machine, so the kernel answers its ARP \
                 and ICMP packets"
            ));
        }
        let foreign = |address: &&Ipv4Addr| {
            let granted = self.addresses.iter().any(|network| network.contains(**address));
            !self.everything && !granted && !kernel.contains(address)
        };
        if let Some(address) = wanted.addresses.iter().find(foreign) {
            return Err(format!(
                "{address} is not an address of this machine, and the broker does not grant it: \
                 start the broker with --network {address}"
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy() -> GrantPolicy {
        let mut policy = GrantPolicy::new("eth1", &[&crate::xdp::RIGHTS]);
        (policy.users, policy.groups) = (vec![1000], vec![50]);
        policy.ports = vec![49153..=49400];
        policy.addresses = vec![network("10.0.0.0/30").unwrap()];
        policy
    }

    #[test]
    fn users_members_of_groups_and_root_are_admitted() {
        let admits = |uid, groups: &[u32]| {
            let peer = PeerIdentity { pid: 1, uid, groups: groups.to_vec() };
            policy().admits(&peer)
        };
        assert!(admits(1000, &[]).is_ok() && admits(7, &[3, 50]).is_ok() && admits(0, &[]).is_ok());
        assert!(admits(1001, &[51]).unwrap_err().contains("grants nothing to user 1001"));
    }

    #[test]
    fn other_interfaces_and_links_are_refused_by_name() {
        assert!(policy().granted_family("xdp", "eth1").is_ok());
        let error = policy().granted_family("xdp", "eth0").unwrap_err();
        assert_eq!(error, "the broker does not grant the interface eth0, only eth1");
        let error = policy().granted_family("packet", "eth1").unwrap_err();
        assert_eq!(
            error,
            "the broker does not grant the link packet, only xdp: start it with another --link"
        );
    }

    #[test]
    fn only_granted_ports_are_taken_from_the_kernel() {
        let steer = |steer: Steer| policy().steer(&steer, &[Ipv4Addr::new(10, 0, 0, 1)]);
        let ports = |ports: &[u16]| Steer { udp_ports: ports.to_vec(), ..Steer::default() };
        assert!(steer(ports(&[49153, 49400])).is_ok());
        let error = steer(ports(&[49200, 53])).unwrap_err();
        let says = "the broker does not grant UDP port 53, only 49153-49400: use one of these, or \
             start the broker with another --port";
        assert_eq!(error, says);
        assert!(steer(Steer { everything: true, ..Steer::default() }).is_err());
        assert!(steer(Steer { ethertypes: vec![0x0800], ..Steer::default() }).is_err());
    }

    /// No user may answer for the gateway's address, nor for addresses that a router forwards.
    #[test]
    fn only_addresses_of_the_machine_and_granted_ones_are_served() {
        let kernel = [Ipv4Addr::new(192, 168, 0, 5), Ipv4Addr::new(192, 168, 0, 255)];
        for own_addresses in [false, true] {
            let steer = |address: [u8; 4]| {
                let addresses = vec![Ipv4Addr::from(address)];
                policy().steer(&Steer { addresses, own_addresses, ..Steer::default() }, &kernel)
            };
            assert_eq!(steer([10, 0, 0, 3]), Ok(()));
            assert_eq!(steer([192, 168, 0, 5]).is_ok(), !own_addresses);
            for foreign in [[10, 0, 0, 4], [192, 168, 0, 1]] {
                let error = steer(foreign).unwrap_err();
                assert!(
                    error.contains(
                        "and the broker does not grant it: start the broker with --network"
                    ),
                    "{error}"
                );
            }
        }
        let mut policy = policy();
        policy.everything = true;
        let addresses = vec![Ipv4Addr::new(10, 9, 9, 9)];
        assert_eq!(policy.steer(&Steer { addresses, ..Steer::default() }, &kernel), Ok(()));
    }

    #[test]
    fn a_network_is_an_address_and_its_bits() {
        let contains = |text: &str, last| network(text).unwrap().contains([10, 0, 0, last].into());
        assert!(contains("10.0.0.7", 7) && !contains("10.0.0.7", 6));
        assert!(contains("10.0.0.4/30", 7) && !contains("10.0.0.4/30", 8));
        assert!(contains("0.0.0.0/0", 1));
        for bad in ["", "10.0.0.0/33", "10.0.0/8", "x", "10.0.0.0/"] {
            assert!(
                network(bad).unwrap_err().contains("is not an address and not a network"),
                "{bad}"
            );
        }
    }

    #[test]
    fn an_address_of_the_machine_stays_with_its_kernel() {
        let own = |last| Steer {
            addresses: vec![Ipv4Addr::new(10, 0, 0, last)],
            own_addresses: true,
            ..Steer::default()
        };
        let kernel = [Ipv4Addr::new(10, 0, 0, 1)];
        assert!(policy().steer(&own(2), &kernel).is_ok());
        assert!(
            policy()
                .steer(&own(1), &kernel)
                .unwrap_err()
                .contains("the kernel answers its ARP and ICMP packets")
        );
        for shared in [[0; 4], [255; 4], [224, 0, 0, 251], [127, 0, 0, 1]] {
            let addresses = vec![Ipv4Addr::from(shared)];
            let own = Steer { addresses, own_addresses: true, ..Steer::default() };
            let error = policy().steer(&own, &kernel).unwrap_err();
            assert!(
                error.ends_with("is not the address of a single host, so a link cannot have it")
            );
        }
    }
}
