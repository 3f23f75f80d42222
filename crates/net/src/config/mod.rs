//! The configuration file: the links of the interfaces, the threads that drive them, and the
//! expected state of the system.
//!
//! ```toml
//! [[interface]]
//! name = "eth1"
//! link = "xdp"                       # or "packet", or "dpdk" with its device
//! mode = "native"                    # the link's own options
//! queues = "0-1"
//! mtu = 9000                         # expected: opening nothing that would not fit
//! addresses = ["192.168.10.1/24"]    # expected of the kernel; with own = true: ours alone
//! offloads = { transmit-checksum = false }   # changed while we run, and put back
//!
//! [[thread]]                         # an I/O thread
//! name = "radio"
//! cpu = 2
//! wait = "spin"
//! interfaces = ["eth1"]
//! ```
//!
//! [`configure`] applies it to the process: from then on a link string such as `xdp:eth1`, or just
//! `eth1`, takes from the file what it does not specify itself.

mod check;
mod dry_run;
mod error;
mod import;
mod link_name;
mod process;
mod schema;
mod survey;
mod wait;

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::path::Path;

use millstream_host::ethtool::Offload;
use millstream_link::Subnet;
use millstream_link::options::Given;
use millstream_ring::Wait;
use serde::{Deserialize, Serialize};

use crate::IoMode;

pub use dry_run::{DryRunFinding, FindingKind, dry_run};
pub use error::ConfigError;
pub use import::{import, import_for_dpdk};
pub use link_name::LinkName;
pub(crate) use process::expand;
pub use process::{Configured, configure};
pub use schema::schema;
pub use survey::{FoundInterface, InterfaceSurvey, ProcessRights};

/// A configuration file.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The interfaces that links may be opened on.
    #[serde(default, rename = "interface", skip_serializing_if = "Vec::is_empty")]
    pub interfaces: Vec<InterfaceConfig>,
    /// The I/O threads. An interface that none of them lists gets its own.
    #[serde(default, rename = "thread", skip_serializing_if = "Vec::is_empty")]
    pub threads: Vec<ThreadConfig>,
}

/// One interface.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct InterfaceConfig {
    /// Its name, such as `eth1`.
    pub name: String,
    /// The link to use where a link string does not name one.
    pub link: LinkName,
    /// The device that DPDK takes (`dpdk` only): a PCI address, as the kernel may not know `name`
    /// then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
    /// The driver of the link.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub io: Option<IoMode>,
    /// The mode in which frames pass (`xdp` only).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
    /// The queues to serve: `all`, `0`, `0-3` (`xdp` only).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queues: Option<String>,
    /// The number of queues that the interface should use while we run; restored afterwards.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub channels: Option<u32>,
    /// The queue that the device should assign to a UDP port while we run, by port; restored
    /// afterwards.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub steer: BTreeMap<String, u32>,
    /// The expected MTU of the interface, bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mtu: Option<u32>,
    /// The addresses belong to the link and not to the kernel.
    #[serde(default, skip_serializing_if = "is_false")]
    pub own: bool,
    /// Addresses with their prefix lengths.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub addresses: Vec<Subnet>,
    /// The router of the default route.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gateway: Option<Ipv4Addr>,
    /// Networks behind other routers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub routes: Vec<RouteConfig>,
    /// The VLAN of the interface.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vlan: Option<u16>,
    /// Offloads to be switched while we run; restored afterwards.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub offloads: BTreeMap<OffloadName, bool>,
    /// Further options of the link: `huge = true`, `busy_poll_us = 50`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub options: BTreeMap<String, Given>,
}

fn is_false(value: &bool) -> bool {
    !value
}

/// A network behind a router.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(deny_unknown_fields)]
pub struct RouteConfig {
    /// The network.
    pub to: Subnet,
    /// The router.
    pub via: Ipv4Addr,
}

/// An offload, ordered by its name.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(transparent)]
pub struct OffloadName(pub Offload);

impl Ord for OffloadName {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.name().cmp(other.0.name())
    }
}

impl PartialOrd for OffloadName {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

/// One I/O thread.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct ThreadConfig {
    /// Its name behind the prefix `ms-io-`.
    pub name: String,
    /// The CPU that it runs on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu: Option<usize>,
    /// Its wait mode.
    #[serde(default, with = "wait", skip_serializing_if = "Option::is_none")]
    pub wait: Option<Wait>,
    /// Real-time priority (SCHED_FIFO), 1 to 99.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<u8>,
    /// The interfaces that it owns.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub interfaces: Vec<String>,
}

impl Config {
    /// Reads and checks a file.
    ///
    /// # Errors
    /// [`ConfigError`] with place, key and what to do.
    pub fn read(path: &Path) -> Result<Self, ConfigError> {
        let text = std::fs::read_to_string(path)
            .map_err(|source| ConfigError::Unreadable { file: path.to_owned(), source })?;
        Self::parse(&text, path)
    }

    /// Reads and checks the text of a file; errors name `path`.
    ///
    /// # Errors
    /// [`ConfigError`] with place, key and what to do.
    pub fn parse(text: &str, path: &Path) -> Result<Self, ConfigError> {
        let config: Self =
            toml::from_str(text).map_err(|error| ConfigError::of_toml(path, text, &error))?;
        match check::first_problem(&config) {
            Some(problem) => Err(ConfigError::of_problem(path, text, problem)),
            None => Ok(config),
        }
    }

    /// Returns the file's section of an interface.
    #[must_use]
    pub fn interface(&self, name: &str) -> Option<&InterfaceConfig> {
        self.interfaces.iter().find(|interface| interface.name == name)
    }

    /// Returns the thread that owns an interface.
    #[must_use]
    pub fn thread_of(&self, interface: &str) -> Option<&ThreadConfig> {
        self.threads.iter().find(|thread| thread.interfaces.iter().any(|name| name == interface))
    }
}

#[cfg(test)]
mod tests;
