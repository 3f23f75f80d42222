//! The errors of clients.

use millstream_radio::{RadioError, RxError, TxError};

use crate::rx::StreamGap;
use crate::time::DeviceTime;

/// Why a client's request failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// An argument or setting has a value that cannot be used.
    #[error("{key}={value} {}: give {expected}", problem(value))]
    Argument {
        /// Its name.
        key: String,
        /// The given value.
        value: String,
        /// What is accepted.
        expected: String,
    },
    /// An error of the radio.
    #[error(transparent)]
    Radio(#[from] RadioError),
    /// An error of a receive stream.
    #[error(transparent)]
    Rx(#[from] RxError),
    /// An error of a transmit stream.
    #[error(transparent)]
    Tx(#[from] TxError),
    /// An error of the emulated radio in this process.
    #[error(transparent)]
    Emulator(#[from] millstream_emulator::Error),
    /// A fault that the emulated radio in this process did not take.
    #[error(transparent)]
    Fault(#[from] millstream_emulator::FaultError),
    /// A stream or radio was used after it was closed.
    #[error("it was closed: open it again")]
    Closed,
    /// A stream was used after an error that ended it.
    #[error("the stream has ended because of an error: {reason}; start it again")]
    Lost {
        /// The error.
        reason: String,
    },
    /// Samples are missing: the stream goes on behind them.
    #[error(
        "{0}: read on, or choose with GapPolicy that reads report gaps, fill them with zeros or \
         drop them"
    )]
    Gap(StreamGap),
    /// A receive stream did not start, because its time had passed.
    #[error(
        "the stream could not start at {time}, because that time had passed when the radio got the \
         command: start it later, or at once"
    )]
    LateStart {
        /// The time.
        time: DeviceTime,
    },
    /// A wrong number of buffers.
    #[error(
        "the stream has {channels} channels, but {given} buffers were given: give one for each"
    )]
    Buffers {
        /// The channels of the stream.
        channels: usize,
        /// The buffers given.
        given: usize,
    },
    /// A sensor that does not exist.
    #[error("there is no sensor \"{name}\"; there are {known}")]
    NoSensor {
        /// The requested name.
        name: String,
        /// The names that exist.
        known: String,
    },
    /// The system refused a thread or an address of a server.
    #[error("the server cannot be started: {source}")]
    Server {
        /// The system's error.
        source: std::io::Error,
    },
}

/// Some languages lose values on their way: then the key is not to blame.
fn problem(value: &str) -> &'static str {
    if value.is_empty() { "came without a value" } else { "cannot be used" }
}
