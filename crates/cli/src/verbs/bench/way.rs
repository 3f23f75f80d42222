//! Directions by name.

use millstream_lab::Direction;

/// Direction of samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum SampleDirection {
    /// From the radio to the host.
    Rx,
    /// From the host to the radio.
    Tx,
    /// First from the radio, then to the radio.
    Both,
}

impl SampleDirection {
    /// The directions, in order.
    pub fn directions(self) -> Vec<Direction> {
        match self {
            Self::Rx => vec![Direction::Rx],
            Self::Tx => vec![Direction::Tx],
            Self::Both => vec![Direction::Rx, Direction::Tx],
        }
    }
}
