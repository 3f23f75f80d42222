//! Sustained rates, measured at the host: a null sink and a signal generator.

mod duplex;
mod receive;
mod shares;
mod transmit;

pub use duplex::{DuplexOutcome, duplex};
pub use receive::{RxChannelOutcome, RxPlan, receive};
pub use transmit::{TxChannelOutcome, TxPlan, transmit};

use millstream_radio::{Device, RadioError, RxError, TxError};
use serde::Serialize;

/// The result of a reception.
pub type RxOutcome = Outcome<RxChannelOutcome>;
/// The result of a transmission.
pub type TxOutcome = Outcome<TxChannelOutcome>;

/// The result of a rate in one direction, whose channels are `C`.
#[derive(Debug, Clone, Serialize)]
pub struct Outcome<C> {
    /// Samples per second of each channel.
    pub rate_hz: f64,
    /// Received: from the first samples to the last. Transmitted: from the first sample given to
    /// the device's report that the last has left.
    pub seconds: f64,
    /// Samples delivered, converted, or taken by the device, of all channels.
    pub samples: u64,
    /// Samples per second of a channel; the mean of all.
    pub sustained_hz: f64,
    /// No sample was lost on any channel; transmitted: none was late or missing at its time,
    /// either, and the end was acknowledged.
    pub lossless: bool,
    /// CPU time of the host's process.
    pub cpu_s: f64,
    /// The same for 10⁹ samples.
    pub cpu_s_per_gigasample: f64,
    /// Received: the lag of the consumer behind the radio's clock, nanoseconds: median, 99th
    /// percentile and worst.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lag_ns: Option<[u64; 3]>,
    /// Each channel.
    pub channels: Vec<C>,
}

/// The reason why a rate could not be measured.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RateError {
    /// The radio is not available or stopped answering.
    #[error(transparent)]
    Radio(#[from] RadioError),
    /// The receive stream cannot continue.
    #[error(transparent)]
    Rx(#[from] RxError),
    /// The transmit stream cannot continue.
    #[error(transparent)]
    Tx(#[from] TxError),
    /// The radio has another rate, so the requested one cannot be measured.
    #[error(
        "the radio has no sample rate of {asked_hz} samples per second, the nearest is \
         {taken_hz}: give a rate that it has"
    )]
    OtherRate {
        /// Samples per second requested.
        asked_hz: f64,
        /// Samples per second offered.
        taken_hz: f64,
    },
}

/// Sets exactly this rate.
pub(crate) fn set_rate(device: &mut Device, asked_hz: f64) -> Result<(), RateError> {
    let taken_hz = device.set_rate(asked_hz)?;
    if (taken_hz / asked_hz - 1.0).abs() > 1e-6 {
        return Err(RateError::OtherRate { asked_hz, taken_hz });
    }
    Ok(())
}
