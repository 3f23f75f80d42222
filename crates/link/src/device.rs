//! The state of the interface that a frame link works on, read from the kernel.

use std::io;

use millstream_host::ethtool::{Channels, Ethtool};
use millstream_host::netlink::{Netlink, NetlinkError, NetlinkInterface, XdpFeatures};
use serde::Serialize;

use crate::LinkError;

/// The present state of one interface.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct InterfaceState {
    /// The report of netlink.
    pub interface: NetlinkInterface,
    /// Its driver; `None` where it has none (loopback).
    pub driver: Option<String>,
    /// The queues in use, and the most that could be, where the driver reports them.
    pub channels: Option<(Channels, Channels)>,
    /// What the driver can do for XDP; `None` where the kernel does not report it (before 6.3).
    pub features: Option<XdpFeatures>,
}

impl InterfaceState {
    /// Reads the rest of an interface's state.
    #[must_use]
    pub fn of(interface: NetlinkInterface, ethtool: Option<&Ethtool>) -> Self {
        let name = interface.name.as_str();
        Self {
            driver: ethtool.and_then(|ethtool| ethtool.driver(name).ok()),
            channels: ethtool.and_then(|ethtool| ethtool.channels(name).ok()),
            features: XdpFeatures::of(interface.index).ok().flatten(),
            interface,
        }
    }

    /// Reads the state of the interface `name`; errors name `link` as the caller.
    ///
    /// # Errors
    /// [`LinkError::Interface`] when there is no such interface.
    pub(crate) fn look(link: &'static str, name: &str) -> Result<Self, LinkError> {
        let interface = Netlink::open().and_then(|mut netlink| netlink.interface(name));
        let interface = interface.map_err(|error| LinkError::Interface {
            link,
            interface: name.to_owned(),
            step: "look at the interface".to_owned(),
            source: match error {
                NetlinkError::Refused { source, .. } => source,
                other => io::Error::new(io::ErrorKind::NotFound, other.to_string()),
            },
            hint: "give an interface of this network namespace, for example xdp:eth1"
                .replace("xdp", link),
        })?;
        Ok(Self::of(interface, Ethtool::open().ok().as_ref()))
    }

    /// Returns its driver's name; empty where it has none.
    pub(crate) fn driver(&self) -> &str {
        self.driver.as_deref().unwrap_or_default()
    }

    /// Returns its largest IP packet, bytes.
    pub(crate) fn mtu(&self) -> usize {
        self.interface.mtu as usize
    }

    /// Returns its Ethernet address, or zeros.
    pub(crate) fn mac(&self) -> [u8; 6] {
        self.interface.mac.unwrap_or_default()
    }

    /// Returns its receive queues in use, where the driver reports them.
    pub(crate) fn receive_queues(&self) -> Option<u32> {
        self.channels.map(|(now, _)| now.receiving())
    }

    /// Returns the number of the XDP program that is attached.
    pub(crate) fn program(&self) -> Option<u32> {
        self.interface.xdp.and_then(|xdp| xdp.program_id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_is_an_interface_without_a_driver() {
        let lo = InterfaceState::look("xdp", "lo").unwrap();
        assert_eq!((lo.mac(), lo.driver.as_deref(), lo.receive_queues()), ([0; 6], None, None));
        assert!(lo.interface.index > 0 && lo.mtu() >= 1500 && lo.program().is_none(), "{lo:?}");
    }

    #[test]
    fn an_unknown_interface_says_which_there_are() {
        for name in ["nonesuch0", "", "a-name-that-is-far-too-long"] {
            let error = InterfaceState::look("xdp", name).unwrap_err().to_string();
            let start = format!(
                "cannot open xdp on {name} (failed step: look at the interface): there is no"
            );
            assert!(error.starts_with(&start) && error.contains("there are: lo"), "{error}");
        }
    }
}
