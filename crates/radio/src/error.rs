//! What can go wrong with a radio, and what to do about it.

use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};

use millstream_link::LinkError;

use crate::rpc::RpcError;

/// Why something could not be done with a radio.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RadioError {
    /// A port could not be opened.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// A remote procedure call failed.
    #[error(transparent)]
    Rpc(#[from] RpcError),
    /// A device argument cannot be used.
    #[error("device argument \"{argument}\": {reason}; known: {known}")]
    BadArgument {
        /// The argument as written.
        argument: String,
        /// What is wrong with it.
        reason: &'static str,
        /// The arguments that exist.
        known: &'static str,
    },
    /// The system refused to send or receive.
    #[error("cannot {what} {address}: {source}")]
    Io {
        /// What was tried.
        what: &'static str,
        /// The peer.
        address: SocketAddrV4,
        /// The system's error.
        source: io::Error,
    },
    /// The machine's network interfaces could not be listed.
    #[error("cannot list the network interfaces: {0}")]
    Interfaces(io::Error),
    /// No answer over UDP within the bound.
    #[error(
        "the device at {address} did not answer {what} ({attempts} attempts of {wait_ms} ms): \
         check that it is on, that the route to it works (ping), and that no firewall drops UDP"
    )]
    Silent {
        /// The device's address.
        address: SocketAddrV4,
        /// What was asked.
        what: &'static str,
        /// How often.
        attempts: u32,
        /// How long each time, milliseconds.
        wait_ms: u64,
    },
    /// The device speaks another version of a protocol.
    #[error("{what} of the device is {found}, but this program speaks {supported}: {hint}")]
    Compat {
        /// Which version.
        what: &'static str,
        /// The device's.
        found: String,
        /// Ours.
        supported: &'static str,
        /// What to do.
        hint: &'static str,
    },
    /// The device refused a register access.
    #[error("the device refused {what} at address {address:#x} of port {port}: {status}")]
    Refused {
        /// Read or write.
        what: &'static str,
        /// The block's control port.
        port: u16,
        /// The register.
        address: u32,
        /// The status it answered with.
        status: &'static str,
    },
    /// The device is not built as the host needs it.
    #[error("the device at {address} is not usable: {reason}")]
    Unusable {
        /// Its address.
        address: Ipv4Addr,
        /// What is missing.
        reason: String,
    },
    /// The channel does not exist.
    #[error("there is no receive channel {channel}; the device has {available} (counted from 0)")]
    NoSuchChannel {
        /// The channel asked for.
        channel: usize,
        /// How many there are.
        available: usize,
    },
    /// Another stream has the channel.
    #[error("receive channel {channel} is streaming already: finish that stream first")]
    ChannelBusy {
        /// The channel asked for.
        channel: usize,
    },
    /// A rate outside of what can be asked for.
    #[error("{rate_hz} samples per second is not a usable rate: it must be a positive number")]
    BadRate {
        /// The rate asked for.
        rate_hz: f64,
    },
}

pub(crate) fn io_error(
    what: &'static str,
    address: SocketAddrV4,
) -> impl FnOnce(io::Error) -> RadioError {
    move |source| RadioError::Io { what, address, source }
}
