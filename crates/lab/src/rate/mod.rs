//! Sustained rates, measured at the host: a null sink and a signal generator.

mod duplex;
mod receive;
mod shares;
mod transmit;

pub use duplex::{DuplexOutcome, duplex};
pub use receive::{RxChannelOutcome, RxOutcome, RxPlan, receive};
pub use transmit::{TxChannelOutcome, TxOutcome, TxPlan, transmit};

use millstream_radio::{Device, RadioError, RxError, TxError};

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
    /// The transmit stream cannot go on.
    #[error(transparent)]
    Tx(#[from] TxError),
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

/// Gives the radio exactly this rate.
pub(crate) fn set_rate(device: &mut Device, asked_hz: f64) -> Result<(), RateError> {
    let taken_hz = device.set_rate(asked_hz)?;
    if (taken_hz / asked_hz - 1.0).abs() > 1e-6 {
        return Err(RateError::OtherRate { asked_hz, taken_hz });
    }
    Ok(())
}
