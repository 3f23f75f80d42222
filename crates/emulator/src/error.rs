//! What can go wrong when a radio is configured or started.

use crate::faults::FaultError;
use millstream_link::LinkError;
use std::io;
use std::net::SocketAddrV4;
use std::path::PathBuf;

/// Why a radio could not be configured or started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A UDP port could not be opened.
    #[error("{purpose}: {source}")]
    Udp {
        /// What the port is for.
        purpose: &'static str,
        /// What the link says: address, port, reason and what to do.
        source: LinkError,
    },
    /// The TCP port could not be opened.
    #[error("{purpose}: cannot open TCP port {address}: {source}; {hint}")]
    Tcp {
        /// What the port is for.
        purpose: &'static str,
        /// The address and port wanted.
        address: SocketAddrV4,
        /// What the system said.
        source: io::Error,
        /// What to do.
        hint: &'static str,
    },
    /// A configuration value is out of range.
    #[error("{field} = {value}: {expected}")]
    Config {
        /// The field of the configuration.
        field: &'static str,
        /// The value given.
        value: String,
        /// What is accepted.
        expected: &'static str,
    },
    /// An antenna specification could not be understood.
    #[error("antenna `{spec}`: {reason}; `millstream sim radio --help` lists all")]
    AntennaSpec {
        /// The specification given.
        spec: String,
        /// What is wrong with it, and what is expected.
        reason: String,
    },
    /// An antenna's file is unusable.
    #[error("antenna `{spec}`: {}: {reason}", path.display())]
    AntennaFile {
        /// The specification given.
        spec: String,
        /// The file.
        path: PathBuf,
        /// What is wrong with it and what to do.
        reason: String,
    },
    /// A fault cannot be had.
    #[error(transparent)]
    Fault(#[from] FaultError),
    /// The file for what is transmitted cannot be written.
    #[error("transmit file {}: {reason}", path.display())]
    TxOut {
        /// The file.
        path: PathBuf,
        /// What is wrong with it and what to do.
        reason: String,
    },
    /// A thread could not be started.
    #[error("cannot start thread {name}: {source}")]
    Thread {
        /// The thread's name.
        name: &'static str,
        /// What the system said.
        source: io::Error,
    },
}
