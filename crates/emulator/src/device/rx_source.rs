//! The sources of a receive channel's samples.

use super::rx_channel::SEGMENTS_MAX;
use super::transmitted::LoopbackBuffer;
use crate::antenna::{Antenna, AntennaSource, Sc16};

/// The source of a channel, with the memory that it needs.
pub(crate) enum RxSource {
    /// A function of the timestamp, or a source that behaves like one.
    Signal(Box<dyn Antenna>),
    /// The signal of the transmit channel of this index.
    Loopback(usize, LoopbackBuffer),
}

impl RxSource {
    /// Returns the source of a channel with a packet buffer of this size.
    pub fn new(source: AntennaSource, rx_buffer_samples: u64) -> Self {
        match source {
            AntennaSource::Signal(antenna) => Self::Signal(antenna),
            AntennaSource::Loopback(cable) => {
                // A burst that finds the buffer full still gets one sample, for EOB.
                let samples = rx_buffer_samples + SEGMENTS_MAX as u64;
                let buffer = LoopbackBuffer::new(samples, cable.delay_samples);
                Self::Loopback(cable.channel, buffer)
            }
        }
    }

    /// Prepares for a sample rate.
    pub fn prepare(&mut self, rate_hz: f64) {
        if let Self::Signal(antenna) = self {
            antenna.prepare(rate_hz);
        }
    }

    /// Writes the next samples to send, with the timestamps from `timestamp` on.
    pub fn fill(&mut self, timestamp: u64, out: &mut [Sc16]) {
        match self {
            Self::Signal(antenna) => antenna.fill(timestamp, out),
            Self::Loopback(_, buffer) => buffer.take(out),
        }
    }

    /// Returns the zeros so far in place of unavailable samples.
    pub fn starved_samples(&self) -> u64 {
        match self {
            Self::Signal(antenna) => antenna.starved_samples(),
            Self::Loopback(..) => 0,
        }
    }

    /// Drops received samples that were not sent.
    pub fn clear(&mut self) {
        if let Self::Loopback(_, buffer) = self {
            buffer.clear();
        }
    }
}
