//! The reasons why a test signal cannot be impaired.

use super::TransmitterError;
use millstream_dsp::impair::EchoError;

/// The spacing of channels, which is also their width.
pub(super) const SPACING_HZ: f64 = 6.0e6;

/// Returns the lowest sample rate that contains a neighbour without aliasing.
pub(super) fn least_rate_hz(channels: i32) -> f64 {
    2.0 * (f64::from(channels).abs() * SPACING_HZ + SPACING_HZ / 2.0)
}

/// The impairments are impossible.
#[derive(Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ImpairmentError {
    /// An echo is too far away.
    #[error(transparent)]
    Echo(#[from] EchoError),
    /// The transmitter of the signal, or of a neighbour, cannot be created.
    #[error(transparent)]
    Transmitter(#[from] TransmitterError),
    /// A neighbour does not fit into the sample rate.
    #[error(
        "a neighbouring channel at {channels:+} needs a sample rate of at least {} Hz, but the \
         rate is {rate_hz} Hz: give a higher rate, or leave the channel out",
        least_rate_hz(*channels)
    )]
    Adjacent {
        /// Distance in channels.
        channels: i32,
        /// The sample rate.
        rate_hz: f64,
    },
    /// A number outside its range.
    #[error("{what} is {value}: give a number from {least} to {most}")]
    Range {
        /// The name of the number.
        what: &'static str,
        /// The value.
        value: f64,
        /// The lowest valid value.
        least: f64,
        /// The highest valid value.
        most: f64,
    },
}
