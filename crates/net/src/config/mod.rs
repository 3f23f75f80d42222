//! The configuration file: the links of the interfaces, the threads that drive them, and the
//! expected state of the system.
//!
//! ```toml
//! [[interface]]
//! name = "eth1"
//! link = "xdp"                       # or "packet", or "dpdk" with its device
//! mode = "native"                    # options of the link, and of its engine
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
mod error;
mod link_name;
mod process;
mod survey;

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::path::Path;

use millstream_host::ethtool::Offload;
use millstream_link::Subnet;
use millstream_link::options::Given;
use serde::{Deserialize, Serialize};

pub use error::ConfigError;
pub use link_name::LinkName;
pub(crate) use process::expand;
pub use process::{Configured, configure};
pub use survey::{FoundInterface, InterfaceSurvey, ProcessRights};

/// A key of a table of the file.
#[derive(Clone, Copy, Debug)]
pub struct ConfigKey {
    /// Its name.
    pub name: &'static str,
    /// The Rust type of its value.
    pub kind: &'static str,
    /// Its meaning.
    pub help: &'static str,
    /// Its attributes of serde.
    pub serde: &'static str,
}

/// Declares tables of the file, which the JSON schema describes with the same words.
macro_rules! tables {
    ($(
        $(#[doc = $about:literal])+
        $(#[derive($($derived:ident),+)])?
        $(#[serde $container:tt])?
        pub struct $table:ident {$(
            $(#[doc = $help:literal])+
            $(#[serde $serde:tt])?
            pub $key:ident: $kind:ty,
        )+}
    )+) => {$(
        $(#[doc = $about])+
        #[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
        $(#[derive($($derived),+)])?
        $(#[serde $container])?
        pub struct $table {$(
            $(#[doc = $help])+
            $(#[serde $serde])?
            pub $key: $kind,
        )+}

        impl $table {
            /// The keys of this table.
            pub const KEYS: &'static [ConfigKey] = &[$(ConfigKey {
                name: stringify!($key),
                kind: stringify!($kind),
                help: concat!($($help),+),
                serde: stringify!($($serde)?),
            }),+];
        }
    )+};
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

tables! {
    /// A configuration file.
    #[derive(Default)]
    #[serde(deny_unknown_fields)]
    pub struct Config {
        /// The interfaces that links may be opened on.
        #[serde(default, rename = "interface", skip_serializing_if = "is_default")]
        pub interfaces: Vec<InterfaceConfig>,
        /// The I/O threads. An interface that none of them lists gets its own.
        #[serde(default, rename = "thread", skip_serializing_if = "is_default")]
        pub threads: Vec<ThreadConfig>,
    }

    /// One interface. Its further keys are options of its link, and of the engine that drives it.
    #[derive(Default)]
    pub struct InterfaceConfig {
        /// Its name, such as eth1.
        pub name: String,
        /// The link to use where a link string does not name one.
        pub link: LinkName,
        /// The device that DPDK takes (dpdk only): a PCI address, as the kernel may not know the
        /// name then.
        #[serde(default, skip_serializing_if = "is_default")]
        pub device: Option<String>,
        /// The number of queues that the interface should use while we run; restored afterwards.
        #[serde(default, skip_serializing_if = "is_default")]
        pub channels: Option<u32>,
        /// The expected MTU of the interface, bytes.
        #[serde(default, skip_serializing_if = "is_default")]
        pub mtu: Option<u32>,
        /// The addresses belong to the link and not to the kernel.
        #[serde(default, skip_serializing_if = "is_default")]
        pub own: bool,
        /// Addresses with their prefix lengths.
        #[serde(default, skip_serializing_if = "is_default")]
        pub addresses: Vec<Subnet>,
        /// The router of the default route.
        #[serde(default, skip_serializing_if = "is_default")]
        pub gateway: Option<Ipv4Addr>,
        /// Options as in a link string, such as mode = "native", vlan = 7, io = "inline".
        #[serde(flatten)]
        pub said: BTreeMap<String, Given>,
        /// The queue that the device should assign to a UDP port while we run, by port; restored
        /// afterwards.
        #[serde(default, skip_serializing_if = "is_default")]
        pub steer: BTreeMap<String, u32>,
        /// Offloads to be switched while we run; restored afterwards.
        #[serde(default, skip_serializing_if = "is_default")]
        pub offloads: BTreeMap<OffloadName, bool>,
        /// Options of the link in a table of their own: the same as beside it.
        #[serde(default, skip_serializing_if = "is_default")]
        pub options: BTreeMap<String, Given>,
        /// Networks behind other routers.
        #[serde(default, skip_serializing_if = "is_default")]
        pub routes: Vec<RouteConfig>,
    }

    /// A network behind a router.
    #[derive(Copy, Eq, Ord, PartialOrd)]
    #[serde(deny_unknown_fields)]
    pub struct RouteConfig {
        /// The network.
        pub to: Subnet,
        /// The router.
        pub via: Ipv4Addr,
    }

    /// One I/O thread.
    #[derive(Default)]
    #[serde(deny_unknown_fields)]
    pub struct ThreadConfig {
        /// Its name behind the prefix ms-io-.
        pub name: String,
        /// The interfaces that it owns.
        #[serde(default, skip_serializing_if = "is_default")]
        pub interfaces: Vec<String>,
        /// The CPU that it runs on.
        #[serde(default, skip_serializing_if = "is_default")]
        pub cpu: Option<Given>,
        /// Its wait mode.
        #[serde(default, skip_serializing_if = "is_default")]
        pub wait: Option<Given>,
        /// Its real-time priority (SCHED_FIFO).
        #[serde(default, skip_serializing_if = "is_default")]
        pub priority: Option<Given>,
    }
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

impl InterfaceConfig {
    /// Returns its options, as in a link string.
    pub fn options(&self) -> impl Iterator<Item = (&str, &str)> {
        self.said.iter().chain(&self.options).map(|(name, Given(value))| (&**name, &**value))
    }
}

impl ThreadConfig {
    /// Returns its settings as options of a link string.
    #[must_use]
    pub fn options(&self) -> Vec<(String, String)> {
        let all = [("cpu", &self.cpu), ("wait", &self.wait), ("priority", &self.priority)];
        let said = all.into_iter().filter_map(|(name, value)| Some((name, value.as_ref()?)));
        said.map(|(name, Given(value))| (name.to_owned(), value.clone())).collect()
    }
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

    /// Completes a link string: what it does not say itself comes from the file. A string that
    /// names no link but an interface of the file gets the file's link.
    #[must_use]
    pub fn complete(&self, link: &str) -> String {
        process::complete(self, link)
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
