//! The values of settings.

use crate::ethtool::{Channels, Ethtool, Offload};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::io;

/// A setting of an interface and its value.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum SettingValue {
    /// The numbers of active queues.
    Channels(Channels),
    /// Whether an offload is on.
    Offload(Offload, bool),
    /// The largest IP packet, bytes.
    Mtu(u32),
    /// The queue that the device gives a UDP port; `None`: any.
    PortQueue {
        /// The port.
        port: u16,
        /// The queue.
        queue: Option<u32>,
    },
}

impl SettingValue {
    /// Returns whether it is another value of the same setting.
    pub(super) fn is_same_setting(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Channels(_), Self::Channels(_)) | (Self::Mtu(_), Self::Mtu(_)) => true,
            (Self::Offload(one, _), Self::Offload(two, _)) => one == two,
            (Self::PortQueue { port: one, .. }, Self::PortQueue { port: two, .. }) => one == two,
            _ => false,
        }
    }

    /// Returns the present value of the same setting.
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

    /// Applies the value.
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
