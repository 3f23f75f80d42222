//! Values that a file writes as text.

use std::fmt;
use std::net::Ipv4Addr;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::stack::Subnet;

/// An IPv4 address or network with its prefix length: `10.0.0.1/24`.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(try_from = "String", into = "String")]
pub struct Cidr {
    /// The address.
    pub address: Ipv4Addr,
    /// Bits of the network, 0 to 32.
    pub prefix: u8,
}

impl Cidr {
    /// Converts it for the stack.
    #[must_use]
    pub fn subnet(self) -> Subnet {
        Subnet { address: self.address, prefix: self.prefix }
    }
}

impl fmt::Display for Cidr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.prefix)
    }
}

/// The error of text that is not an address with a prefix length.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("`{0}` is not an address with the bits of its network; write it like 192.168.10.1/24")]
pub struct ParseCidrError(String);

impl FromStr for Cidr {
    type Err = ParseCidrError;

    fn from_str(text: &str) -> Result<Self, ParseCidrError> {
        let parse = || {
            let (address, prefix) = text.split_once('/')?;
            let prefix = prefix.parse().ok().filter(|prefix| *prefix <= 32)?;
            Some(Self { address: address.parse().ok()?, prefix })
        };
        parse().ok_or_else(|| ParseCidrError(text.to_owned()))
    }
}

impl TryFrom<String> for Cidr {
    type Error = ParseCidrError;

    fn try_from(text: String) -> Result<Self, ParseCidrError> {
        text.parse()
    }
}

impl From<Cidr> for String {
    fn from(cidr: Cidr) -> Self {
        cidr.to_string()
    }
}

/// A wait mode that may be left out.
pub(super) mod optional {
    use millstream_ring::Wait;
    use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

    pub fn serialize<S: Serializer>(wait: &Option<Wait>, serializer: S) -> Result<S::Ok, S::Error> {
        wait.map(Wait::name).serialize(serializer)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Wait>, D::Error> {
        let word = Option::<String>::deserialize(from)?;
        word.map(|word| word.parse().map_err(D::Error::custom)).transpose()
    }
}
