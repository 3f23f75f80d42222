//! The selection of the frames that a link should deliver.

use std::net::Ipv4Addr;

use serde::{Deserialize, Serialize};

/// The frames that are wanted; the rest stays with the kernel.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Steer {
    /// Every frame: the kernel sees nothing more of this interface.
    pub everything: bool,
    /// IPv4 addresses that are served.
    pub addresses: Vec<Ipv4Addr>,
    /// UDP ports served at those addresses (and at broadcast addresses).
    pub udp_ports: Vec<u16>,
    /// The kernel does not have `addresses`: their ARP, their ICMP and their datagrams for every
    /// port are wanted, too, because nothing else answers them.
    pub own_addresses: bool,
    /// The VLAN of the frames. `None`: untagged ones.
    pub vlan: Option<u16>,
    /// Further Ethernet types wanted, such as a private one for measurements.
    pub ethertypes: Vec<u16>,
}
