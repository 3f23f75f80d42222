//! Where the server listens.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::str::FromStr;

/// An address for `--web`: `PORT`, which is at this machine only, or `ADDR:PORT`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct WebAddress(pub SocketAddr);

impl WebAddress {
    /// Whether other machines can reach it, so that a client needs a token.
    #[must_use]
    pub fn needs_token(&self) -> bool {
        !self.0.ip().is_loopback()
    }
}

impl FromStr for WebAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Ok(port) = text.parse::<u16>() {
            return Ok(Self((Ipv4Addr::LOCALHOST, port).into()));
        }
        if let Some(port) = text.strip_prefix("localhost:").and_then(|port| port.parse().ok()) {
            return Ok(Self(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port)));
        }
        text.parse().map(Self).map_err(|_| {
            "write PORT, for this machine only, or ADDR:PORT, for example 8080, 0.0.0.0:8080 or \
             [::]:8080; port 0 takes a free one"
                .to_owned()
        })
    }
}

impl fmt::Display for WebAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_alone_is_for_this_machine() {
        let parse = |text: &str| text.parse::<WebAddress>().unwrap();
        assert_eq!(parse("8080").to_string(), "127.0.0.1:8080");
        assert_eq!(parse("localhost:1").to_string(), "127.0.0.1:1");
        assert!(!parse("8080").needs_token() && !parse("[::1]:8080").needs_token());
        assert!(parse("0.0.0.0:8080").needs_token() && parse("192.168.1.5:80").needs_token());
        for wrong in ["", "65536", "x", "example.org:80", "1.2.3.4", "-1"] {
            assert!(wrong.parse::<WebAddress>().unwrap_err().contains("0.0.0.0:8080"), "{wrong}");
        }
    }
}
