//! What a `dpdk` link works on: a device on the PCI bus, or one of DPDK's ports in software.

use std::fmt;

/// DPDK's name for a kind of port in software, and ours.
const DRIVERS: [(&str, Driver); 9] = [
    ("memif", Driver::Memif),
    ("vhost", Driver::Vhost),
    ("virtio_user", Driver::VirtioUser),
    ("ring", Driver::Ring),
    ("af_xdp", Driver::AfXdp),
    ("af_packet", Driver::AfPacket),
    ("tap", Driver::Tap),
    ("pcap", Driver::Pcap),
    ("null", Driver::Null),
];

/// A driver of a port in software.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Driver {
    Memif,
    Vhost,
    VirtioUser,
    Ring,
    AfXdp,
    AfPacket,
    Tap,
    Pcap,
    Null,
}

/// What the link string names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum DeviceName {
    /// Its address, with domain.
    Pci(String),
    /// Its driver, and its name as in the link string, such as `memif0`.
    Software(Driver, String),
}

impl DeviceName {
    /// Reads a device's name.
    pub fn parse(text: &str) -> Option<Self> {
        if let Some(address) = pci(text) {
            return Some(Self::Pci(address));
        }
        let name = text.strip_prefix("net_").unwrap_or(text);
        let stem = name.trim_end_matches(|c: char| c.is_ascii_digit());
        let (_, driver) = DRIVERS.iter().find(|(known, _)| *known == stem)?;
        Some(Self::Software(*driver, name.to_owned()))
    }

    /// The names that there are, for errors.
    pub fn known() -> String {
        DRIVERS.map(|(name, _)| name).join(", ")
    }

    /// The name by which EAL knows it.
    pub fn eal_name(&self) -> String {
        match self {
            Self::Pci(address) => address.clone(),
            Self::Software(_, name) => format!("net_{name}"),
        }
    }

    /// Its driver, if it is a port in software.
    pub fn driver(&self) -> Option<Driver> {
        match self {
            Self::Pci(_) => None,
            Self::Software(driver, _) => Some(*driver),
        }
    }
}

impl fmt::Display for DeviceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pci(address) => f.write_str(address),
            Self::Software(_, name) => f.write_str(name),
        }
    }
}

impl Driver {
    /// The other end is a process, which comes and goes.
    pub fn has_peer(self) -> bool {
        matches!(self, Self::Memif | Self::Vhost | Self::VirtioUser)
    }

    /// Frames lie in memory that both ends share: where a receiver is slow its ring is full at the
    /// sender, and nobody else could lose them.
    pub fn is_memory(self) -> bool {
        self.has_peer() || self == Self::Ring
    }

    /// The driver's argument that names an interface of the kernel's.
    pub fn interface_argument(self) -> Option<&'static str> {
        matches!(self, Self::AfXdp | Self::AfPacket).then_some("iface")
    }
}

/// A PCI address, with its domain: `0000:03:00.0`.
fn pci(text: &str) -> Option<String> {
    let hex = |text: &str, digits: usize| {
        text.len() == digits && text.bytes().all(|byte| byte.is_ascii_hexdigit())
    };
    let parts: Vec<_> = text.split(':').collect();
    let (domain, bus, rest) = match parts[..] {
        [bus, rest] => ("0000", bus, rest),
        [domain, bus, rest] => (domain, bus, rest),
        _ => return None,
    };
    let (device, function) = rest.split_once('.')?;
    let right = hex(domain, 4) && hex(bus, 2) && hex(device, 2) && hex(function, 1);
    right.then(|| format!("{domain}:{bus}:{device}.{function}").to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_names_are_told_apart() {
        let pci = |text: &str| DeviceName::Pci(text.to_owned());
        let soft = |driver, name: &str| DeviceName::Software(driver, name.to_owned());
        for (text, expected) in [
            ("0000:03:00.0", Some(pci("0000:03:00.0"))),
            ("3B:00.1", Some(pci("0000:3b:00.1"))),
            ("memif0", Some(soft(Driver::Memif, "memif0"))),
            ("net_af_packet12", Some(soft(Driver::AfPacket, "af_packet12"))),
            ("virtio_user", Some(soft(Driver::VirtioUser, "virtio_user"))),
            ("03:00", None),
            ("03:0g.0", None),
            ("eth1", None),
            ("memifx", None),
        ] {
            assert_eq!(DeviceName::parse(text), expected, "{text}");
        }
        assert_eq!(DeviceName::parse("ring3").unwrap().eal_name(), "net_ring3");
    }
}
