//! IPv4 networks.

use std::fmt;
use std::net::Ipv4Addr;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// An IPv4 address and the prefix length of its network: `10.0.0.1/24`.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(try_from = "String", into = "String")]
pub struct Subnet {
    /// The address.
    pub address: Ipv4Addr,
    /// Bits of the network, 0 to 32.
    pub prefix: u8,
}

impl Subnet {
    /// Returns the mask of the network.
    #[must_use]
    pub fn mask(&self) -> u32 {
        u32::MAX.checked_shl(32 - u32::from(self.prefix)).unwrap_or(0)
    }

    /// Whether an address lies in the network.
    #[must_use]
    pub fn contains(&self, other: Ipv4Addr) -> bool {
        (u32::from(self.address) ^ u32::from(other)) & self.mask() == 0
    }

    /// Returns the broadcast address; networks of one or two addresses have none (RFC 3021).
    #[must_use]
    pub fn broadcast(&self) -> Option<Ipv4Addr> {
        (self.prefix < 31).then(|| Ipv4Addr::from(u32::from(self.address) | !self.mask()))
    }

    /// Whether an address is the first or the last of the network, which no station can have.
    #[must_use]
    pub fn is_reserved(&self, other: Ipv4Addr) -> bool {
        let host = u32::from(other) & !self.mask();
        self.prefix < 31 && self.contains(other) && (host == 0 || host == !self.mask())
    }
}

impl fmt::Display for Subnet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.prefix)
    }
}

/// The error of text that is not an address with a prefix length.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("`{0}` is not an address with the bits of its network; write it like 192.168.10.1/24")]
pub struct ParseSubnetError(String);

impl FromStr for Subnet {
    type Err = ParseSubnetError;

    fn from_str(text: &str) -> Result<Self, ParseSubnetError> {
        let parse = || {
            let (address, prefix) = text.split_once('/')?;
            let prefix = prefix.parse().ok().filter(|prefix| *prefix <= 32)?;
            Some(Self { address: address.parse().ok()?, prefix })
        };
        parse().ok_or_else(|| ParseSubnetError(text.to_owned()))
    }
}

impl TryFrom<String> for Subnet {
    type Error = ParseSubnetError;

    fn try_from(text: String) -> Result<Self, ParseSubnetError> {
        text.parse()
    }
}

impl From<Subnet> for String {
    fn from(subnet: Subnet) -> Self {
        subnet.to_string()
    }
}
