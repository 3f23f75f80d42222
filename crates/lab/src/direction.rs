//! The direction of samples.

use serde::Serialize;

/// The direction of samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// From the radio.
    Rx,
    /// To the radio.
    Tx,
}

impl Direction {
    /// Its name in a table.
    pub fn name(self) -> &'static str {
        match self {
            Self::Rx => "receive",
            Self::Tx => "transmit",
        }
    }
}
