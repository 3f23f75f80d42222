//! Remote procedure calls to a device: MessagePack-RPC or gRPC over TCP.

mod claim;
mod client;
mod keeper;
mod patience;
mod renewal;
mod value;

pub use claim::{ClaimLoss, DeviceClaim, RECLAIM_PERIOD};
pub use client::RpcClient;
pub use millstream_mpm::{take_apart, take_object};
pub use patience::end_waits_if;
pub use renewal::{Renewal, RenewalStep};
pub use value::{Map, as_f64, as_map, as_maps, as_u64, as_version};

use std::io;
use std::net::SocketAddrV4;
use std::time::Duration;

use millstream_link::interfaces;

/// The time limit for an ordinary call.
pub const CALL_TIMEOUT: Duration = Duration::from_secs(2);

/// The time limit for `init`: real devices program clocks and converters in it.
pub const INIT_TIMEOUT: Duration = Duration::from_secs(120);

/// Why a call failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RpcError {
    /// No server accepts the connection.
    #[error(
        "cannot connect to the management server of the device at {address}: {source}; {}",
        remedy(*address)
    )]
    Connect {
        /// The server.
        address: SocketAddrV4,
        /// The system's error.
        source: io::Error,
    },
    /// The connection broke during a call.
    #[error(
        "the connection to {address} broke during the call \"{method}\": {source}; open the \
         device again"
    )]
    Broken {
        /// The method called.
        method: String,
        /// The server.
        address: SocketAddrV4,
        /// The system's error.
        source: io::Error,
    },
    /// No response in time.
    #[error(
        "the device at {address} did not answer the call \"{method}\" within {timeout_ms} ms: try \
         again, then restart the device"
    )]
    Timeout {
        /// The method called.
        method: String,
        /// The server.
        address: SocketAddrV4,
        /// The bound, milliseconds.
        timeout_ms: u64,
    },
    /// The program was asked to end.
    #[error("interrupted while the device at {address} worked on \"{method}\"")]
    Interrupted {
        /// The method called.
        method: String,
        /// The server.
        address: SocketAddrV4,
    },
    /// The device answered with an error.
    #[error("the device at {address} refused the call \"{method}\": {message}{}", hint(method))]
    Remote {
        /// The method called.
        method: String,
        /// The server.
        address: SocketAddrV4,
        /// The device's text.
        message: String,
    },
    /// The response is not valid for this method.
    #[error(
        "the device at {address} answered the call \"{method}\" with {what}: check that it is a \
         device with MPM"
    )]
    Protocol {
        /// The method called.
        method: String,
        /// The server.
        address: SocketAddrV4,
        /// The fault.
        what: String,
    },
}

impl RpcError {
    /// Describes the failure, without a remedy.
    pub(crate) fn what(&self) -> String {
        match self {
            Self::Broken { method, address, source } => {
                format!("the connection to {address} broke during the call \"{method}\": {source}")
            }
            Self::Timeout { method, address, timeout_ms } => {
                format!(
                    "the device at {address} did not answer the call \"{method}\" within \
                     {timeout_ms} ms"
                )
            }
            other => other.to_string(),
        }
    }
}

/// Returns the remedy for a device that does not answer, whose claim was lost for this reason.
pub(crate) fn advice(claim_lost: Option<&str>) -> String {
    let before = claim_lost.map(|reason| format!("; before that, the claim was lost: {reason}"));
    format!("check its power and the cable, then open it again{}", before.unwrap_or_default())
}

/// Returns what to do about a server that cannot be reached.
fn remedy(address: SocketAddrV4) -> String {
    match interfaces::down_towards(*address.ip()) {
        Some(name) => {
            format!("the interface {name} is down: bring it up with `ip link set {name} up`")
        }
        None => "check the address, and that the device (or emulated radio) runs".to_owned(),
    }
}

fn hint(method: &str) -> &'static str {
    match method {
        "claim" => "; another program holds the device: end it, or wait 5 s if it has crashed",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_that_was_lost_is_told_once_behind_the_advice() {
        let broken = RpcError::Broken {
            method: "reclaim".to_owned(),
            address: SocketAddrV4::new([10, 0, 0, 2].into(), 49601),
            source: io::ErrorKind::UnexpectedEof.into(),
        };
        assert_eq!(
            advice(Some(&broken.what())),
            "check its power and the cable, then open it again; before that, the claim was lost: \
             the connection to 10.0.0.2:49601 broke during the call \"reclaim\": unexpected end of \
             file"
        );
        assert_eq!(advice(None), "check its power and the cable, then open it again");
    }
}
