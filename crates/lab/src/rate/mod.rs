//! Sustained rates: a null sink on the receive side, measured at the host.

mod receive;

pub use receive::{RxChannelOutcome, RxOutcome, RxPlan, receive};

use millstream_radio::{RadioError, RxError};

/// Why a rate could not be measured.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RateError {
    /// The radio cannot be had or stopped answering.
    #[error(transparent)]
    Radio(#[from] RadioError),
    /// The receive stream cannot go on.
    #[error(transparent)]
    Rx(#[from] RxError),
    /// The radio has another rate, so what was asked for cannot be measured.
    #[error(
        "the radio offers {taken_hz} samples per second where {asked_hz} were asked for: ask for a \
         rate that it has"
    )]
    OtherRate {
        /// Samples per second asked for.
        asked_hz: f64,
        /// Samples per second offered.
        taken_hz: f64,
    },
}
