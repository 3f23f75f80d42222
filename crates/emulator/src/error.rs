//! The errors of the configuration or start of a radio.

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
    #[error("cannot start the radio ({purpose}): {source}")]
    Udp {
        /// The purpose of the port.
        purpose: &'static str,
        /// The link's error: address, port, reason and remedy.
        source: LinkError,
    },
    /// The TCP port could not be opened.
    #[error("cannot open TCP port {address} ({purpose}): {source}; {hint}")]
    Tcp {
        /// The purpose of the port.
        purpose: &'static str,
        /// The requested address and port.
        address: SocketAddrV4,
        /// The system's error.
        source: io::Error,
        /// The remedy.
        hint: &'static str,
    },
    /// A configuration value is out of range.
    #[error("the setting {field} is {value}: give {expected}")]
    Config {
        /// The field of the configuration.
        field: &'static str,
        /// The given value.
        value: String,
        /// The accepted values.
        expected: &'static str,
    },
    /// An antenna specification could not be parsed.
    #[error("cannot use antenna `{spec}`: {reason}; `millstream sim radio --help` lists all forms")]
    AntennaSpec {
        /// The given specification.
        spec: String,
        /// The fault, and the expected form.
        reason: String,
    },
    /// An antenna's file is unusable.
    #[error("cannot use antenna `{spec}`: {}: {reason}", path.display())]
    AntennaFile {
        /// The given specification.
        spec: String,
        /// The file.
        path: PathBuf,
        /// The fault and its remedy.
        reason: String,
    },
    /// A scene cannot be used.
    #[error("cannot use the scene {}: {reason}", path.display())]
    Scene {
        /// The file.
        path: PathBuf,
        /// The fault and its remedy.
        reason: String,
    },
    /// A fault specification was rejected.
    #[error(transparent)]
    Fault(#[from] FaultError),
    /// The file for transmitted samples cannot be written.
    #[error("cannot write the transmit file {}: {reason}", path.display())]
    TxOut {
        /// The file.
        path: PathBuf,
        /// The fault and its remedy.
        reason: String,
    },
    /// A thread could not be started.
    #[error("cannot start the thread {name}: {source}")]
    Thread {
        /// The thread's name.
        name: &'static str,
        /// The system's error.
        source: io::Error,
    },
}
