//! The direction of samples.

use crate::named::named;
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

named!(Direction, 2, [(Rx, "receive"), (Tx, "transmit")]);
