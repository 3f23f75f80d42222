//! What a setting can be set to.

use crate::ethtool::{Channels, Ethtool, Offload};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::io;

/// A setting of an interface and its value.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum SettingValue {
    /// How many queues serve.
    Channels(Channels),
    /// Whether an offload is on.
    Offload(Offload, bool),
    /// Largest IP packet, bytes.
    Mtu(u32),
    /// The queue that the device gives a UDP port; none: any.
    PortQueue {
        /// The port.
        port: u16,
        /// The queue.
        queue: Option<u32>,
    },
}

impl SettingValue {
    /// Whether it is another value of the same setting.
    pub(super) fn is_same_setting(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Channels(_), Self::Channels(_)) | (Self::Mtu(_), Self::Mtu(_)) => true,
            (Self::Offload(one, _), Self::Offload(two, _)) => one == two,
            (Self::PortQueue { port: one, .. }, Self::PortQueue { port: two, .. }) => one == two,
            _ => false,
        }
    }

    /// What the same setting is now.
    pub(super) fn current(&self, interface: &str) -> io::Result<Self> {
        let ethtool = Ethtool::open()?;
        Ok(match *self {
            Self::Channels(_) => Self::Channels(ethtool.channels(interface)?.0),
            Self::Offload(offload, _) => {
                Self::Offload(offload, ethtool.offload(interface, offload)?)
            }
            Self::Mtu(_) => Self::Mtu(ethtool.mtu(interface)?),
            Self::PortQueue { port, .. } => {
                Self::PortQueue { port, queue: ethtool.port_queue(interface, port)? }
            }
        })
    }

    /// Makes it so.
    pub(super) fn apply(&self, interface: &str) -> io::Result<()> {
        let ethtool = Ethtool::open()?;
        match *self {
            Self::Channels(channels) => ethtool.set_channels(interface, channels),
            Self::Offload(offload, on) => ethtool.set_offload(interface, offload, on),
            Self::Mtu(mtu) => ethtool.set_mtu(interface, mtu),
            Self::PortQueue { port, queue } => ethtool.set_port_queue(interface, port, queue),
        }
    }
}

impl fmt::Display for SettingValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Channels(Channels { receive, transmit, combined }) => {
                write!(f, "the queues ({receive} rx, {transmit} tx, {combined} combined)")
            }
            Self::Offload(offload, on) => {
                write!(f, "the offload {} ({})", offload.name(), if *on { "on" } else { "off" })
            }
            Self::Mtu(mtu) => write!(f, "the MTU ({mtu})"),
            Self::PortQueue { port, queue: None } => {
                write!(f, "the queue of UDP port {port} (any)")
            }
            Self::PortQueue { port, queue: Some(queue) } => {
                write!(f, "the queue of UDP port {port} ({queue})")
            }
        }
    }
}
