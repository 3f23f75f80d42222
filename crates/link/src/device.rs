//! The state of the interface that a frame link works on, read from the kernel.

use std::io;

use millstream_host::ethtool::Ethtool;
use millstream_host::netlink::{Netlink, NetlinkError, XdpFeatures};

use crate::LinkError;

/// The present state of one interface.
#[derive(Debug, Clone)]
pub(crate) struct InterfaceState {
    pub name: String,
    pub index: u32,
    pub mac: [u8; 6],
    /// Largest IP packet, bytes.
    pub mtu: usize,
    pub up: bool,
    /// The driver's name; empty where it has none (loopback).
    pub driver: String,
    /// Receive queues in use, where the driver reports them.
    pub receive_queues: Option<u32>,
    /// The number of the XDP program that is attached.
    pub program: Option<u32>,
    /// The XDP features that the driver reports.
    pub features: Option<XdpFeatures>,
}

impl InterfaceState {
    /// Reads the state of the interface `name`; errors name `link` as the caller.
    ///
    /// # Errors
    /// [`LinkError::Interface`] when there is no such interface.
    pub fn look(link: &'static str, name: &str) -> Result<Self, LinkError> {
        Self::ask(name).map_err(|error| LinkError::Interface {
            link,
            interface: name.to_owned(),
            step: "look at the interface".to_owned(),
            source: match error {
                NetlinkError::Refused { source, .. } => source,
                other => io::Error::new(io::ErrorKind::NotFound, other.to_string()),
            },
            hint: "give an interface of this network namespace, for example xdp:eth1"
                .replace("xdp", link),
        })
    }

    fn ask(name: &str) -> Result<Self, NetlinkError> {
        let found = Netlink::open()?.interface(name)?;
        let tool = Ethtool::open().ok();
        let driver = tool.as_ref().and_then(|tool| tool.driver(name).ok());
        let channels = tool.as_ref().and_then(|tool| tool.channels(name).ok());
        Ok(Self {
            name: found.name,
            index: found.index,
            mac: found.mac.unwrap_or_default(),
            mtu: found.mtu as usize,
            up: found.up,
            driver: driver.unwrap_or_default(),
            receive_queues: channels.map(|(now, _)| now.receiving()),
            program: found.xdp.and_then(|xdp| xdp.program_id),
            features: XdpFeatures::of(found.index).ok().flatten(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_is_an_interface_without_a_driver() {
        let lo = InterfaceState::look("xdp", "lo").unwrap();
        assert_eq!((lo.mac, lo.driver.as_str(), lo.receive_queues), ([0; 6], "", None));
        assert!(lo.index > 0 && lo.mtu >= 1500 && lo.program.is_none(), "{lo:?}");
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
