//! The device of a `dpdk` link: on the PCI bus, or one of DPDK's software ports in memory.

use std::fmt;

use crate::entry::LinkEntry;

/// The kinds of software ports: DPDK's name, and ours.
const DRIVERS: [(&str, Driver); 4] = [
    ("memif", Driver::Memif),
    ("vhost", Driver::Vhost),
    ("virtio_user", Driver::VirtioUser),
    ("ring", Driver::Ring),
];

/// DPDK's ports on the kernel's interfaces, and the links of ours that take their place.
const REPLACED: [(&str, &LinkEntry); 2] =
    [("af_xdp", &crate::xdp::LINK), ("af_packet", &crate::packet::LINK)];

/// A driver of a software port. Its frames lie in memory that both ends share: a slow receiver's
/// ring is then full at the sender, and only the sender can drop them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Driver {
    Memif,
    Vhost,
    VirtioUser,
    Ring,
}

/// The device that the link string names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum DeviceName {
    /// Its PCI address, with domain.
    Pci(String),
    /// Its driver, and its name in the link string, such as `memif0`.
    Software(Driver, String),
}

impl DeviceName {
    /// Parses a device's name.
    pub fn parse(text: &str) -> Option<Self> {
        if let Some(address) = pci(text) {
            return Some(Self::Pci(address));
        }
        let (name, stem) = split(text);
        let (_, driver) = DRIVERS.iter().find(|(known, _)| *known == stem)?;
        Some(Self::Software(*driver, name.to_owned()))
    }

    /// Returns the possible names, for errors.
    pub fn known() -> String {
        DRIVERS.map(|(name, _)| name).join(", ")
    }

    /// Returns the link of ours that does what the named port of DPDK does.
    pub fn replacement(text: &str) -> Option<&'static str> {
        let (_, stem) = split(text);
        REPLACED.iter().find(|(name, _)| *name == stem).map(|(_, link)| link.name)
    }

    /// Returns EAL's name of it.
    pub fn eal_name(&self) -> String {
        match self {
            Self::Pci(address) => address.clone(),
            Self::Software(_, name) => format!("net_{name}"),
        }
    }

    /// Returns its driver, if it is a software port.
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

/// Splits the name of a software port: without EAL's prefix, and without the number as well.
fn split(text: &str) -> (&str, &str) {
    let name = text.strip_prefix("net_").unwrap_or(text);
    (name, name.trim_end_matches(|c: char| c.is_ascii_digit()))
}

/// Parses a PCI address and adds its domain: `0000:03:00.0`.
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
            ("net_vhost12", Some(soft(Driver::Vhost, "vhost12"))),
            ("virtio_user", Some(soft(Driver::VirtioUser, "virtio_user"))),
            ("03:00", None),
            ("03:0g.0", None),
            ("eth1", None),
            ("memifx", None),
            ("af_xdp0", None),
        ] {
            assert_eq!(DeviceName::parse(text), expected, "{text}");
        }
        assert_eq!(DeviceName::parse("ring3").unwrap().eal_name(), "net_ring3");
    }
}
