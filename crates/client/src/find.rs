//! Finding radios.

use std::net::Ipv4Addr;
use std::time::Duration;

use millstream_radio::{DeviceArgs, DiscoveryTarget, discover};

use crate::args::ClientArgs;
use crate::error::ClientError;

/// How long a search of all networks waits for answers. Clients search before each opening, and the
/// whole search should take 150 ms at most.
const SEARCH_TIME: Duration = Duration::from_millis(130);

/// How long a search waits for one address. The answer ends it.
const ADDRESS_TIME: Duration = Duration::from_millis(150);

/// A radio that can be opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundRadio {
    /// Its address; `None` for an emulated radio in this process.
    pub addr: Option<Ipv4Addr>,
    /// Its serial number; empty when not reported.
    pub serial: String,
    /// Its type, such as `e3xx`.
    pub device_type: String,
    /// Its product, such as `e320`.
    pub product: String,
    /// Its name.
    pub name: String,
    /// Another program uses it.
    pub claimed: bool,
}

impl FoundRadio {
    /// Returns a line for lists. It does not change while the radio is there.
    pub fn label(&self) -> String {
        let product = self.product.to_uppercase();
        match self.addr {
            Some(addr) => format!("Millstream {product} at {addr} (serial {})", self.serial),
            None => "Millstream E320, emulated in this process".to_owned(),
        }
    }
}

/// Returns the radios that fit the keys. It claims none, so it may run while others stream.
///
/// Without `addr` it searches all networks of this machine. An emulated radio of this process is
/// found only by `radio=emulated`, and is not started.
///
/// # Errors
/// [`ClientError::Argument`], [`ClientError::Radio`].
pub fn find(args: &ClientArgs) -> Result<Vec<FoundRadio>, ClientError> {
    if args.is_emulated()? {
        return Ok(vec![FoundRadio {
            addr: None,
            serial: args.get("serial").unwrap_or_default().to_owned(),
            device_type: "e3xx".to_owned(),
            product: "e320".to_owned(),
            name: "emulated".to_owned(),
            claimed: false,
        }]);
    }
    let bad = |key: &str, value: &str, expected: &str| ClientError::Argument {
        key: key.to_owned(),
        value: value.to_owned(),
        expected: expected.to_owned(),
    };
    let addr = args
        .get("addr")
        .map(|text| text.parse::<Ipv4Addr>().map_err(|_| bad("addr", text, "an IPv4 address")));
    let port = args
        .get("discovery_port")
        .map(|text| text.parse().map_err(|_| bad("discovery_port", text, "a port number")));
    let usual = DeviceArgs::new(Ipv4Addr::UNSPECIFIED).discovery_port;
    let port = port.transpose()?.unwrap_or(usual);
    let found = match addr.transpose()? {
        Some(addr) => discover(DiscoveryTarget::Address(addr), port, ADDRESS_TIME),
        None => discover(DiscoveryTarget::Broadcast, port, SEARCH_TIME),
    };
    let fits = |key: &str, value: &str| args.get(key).is_none_or(|wanted| wanted == value);
    let mut radios: Vec<FoundRadio> = found?
        .iter()
        .filter(|one| ["serial", "type", "product"].iter().all(|key| fits(key, one.field(key))))
        .map(|one| FoundRadio {
            addr: Some(one.address),
            serial: one.field("serial").to_owned(),
            device_type: one.field("type").to_owned(),
            product: one.field("product").to_owned(),
            name: one.field("name").to_owned(),
            claimed: one.is_claimed(),
        })
        .collect();
    radios.sort_by_key(|radio| radio.addr);
    Ok(radios)
}
