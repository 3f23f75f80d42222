//! Directions by name.

use millstream_lab::Direction::{self, Rx, Tx};

/// Directions of samples, in order.
pub const DIRECTIONS: [(&str, &str, &[Direction]); 3] = [
    ("rx", "From the radio to the host", &[Rx]),
    ("tx", "From the host to the radio", &[Tx]),
    ("both", "First from the radio, then to the radio", &[Rx, Tx]),
];
