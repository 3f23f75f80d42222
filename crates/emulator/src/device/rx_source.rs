//! The sources of a receive channel's samples.

use super::rx_chain::{ChainInput, RxChain};
use super::rx_channel::SEGMENTS_MAX;
use super::transmitted::LoopbackBuffer;
use crate::antenna::{Antenna, AntennaSource, Sc16};
use crate::scene::SceneReceiver;

/// The source of a channel, with the memory that it needs.
pub(crate) enum RxSource {
    /// A function of the timestamp, or a source that behaves like one.
    Signal(Box<dyn Antenna>),
    /// The signal of the transmit channel of this index.
    Loopback(usize, LoopbackBuffer),
    /// Blocks process the samples.
    Chain(Box<RxChain>),
}

impl RxSource {
    /// Returns the source of a channel with a packet buffer of this size: the scene if there is
    /// one, and behind a DDC if there is one.
    pub fn new(
        source: AntennaSource,
        scene: Option<SceneReceiver>,
        rx_buffer_samples: u64,
        has_ddc: bool,
    ) -> Self {
        let chain = |input| Self::Chain(Box::new(RxChain::new(input, rx_buffer_samples, has_ddc)));
        if let Some(scene) = scene {
            return chain(ChainInput::Scene(Box::new(scene)));
        }
        if has_ddc {
            return chain(match source {
                AntennaSource::Signal(antenna) => ChainInput::Antenna(antenna),
                AntennaSource::Loopback(cable) => {
                    ChainInput::Loopback(cable.channel, cable.delay_samples)
                }
            });
        }
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
        match self {
            Self::Signal(antenna) => antenna.prepare(rate_hz),
            Self::Chain(chain) => chain.prepare(rate_hz),
            Self::Loopback(..) => {}
        }
    }

    /// Writes the next samples to send, with the timestamps from `timestamp` on.
    pub fn fill(&mut self, timestamp: u64, out: &mut [Sc16]) {
        match self {
            Self::Signal(antenna) => antenna.fill(timestamp, out),
            Self::Loopback(_, buffer) => buffer.take(out),
            Self::Chain(chain) => chain.take(out),
        }
    }

    /// Returns the zeros so far in place of unavailable samples.
    pub fn starved_samples(&self) -> u64 {
        match self {
            Self::Signal(antenna) => antenna.starved_samples(),
            Self::Loopback(..) => 0,
            Self::Chain(chain) => chain.starved_samples(),
        }
    }

    /// Drops received samples that were not sent.
    pub fn clear(&mut self) {
        match self {
            Self::Signal(_) => {}
            Self::Loopback(_, buffer) => buffer.clear(),
            Self::Chain(chain) => chain.clear(),
        }
    }

    /// Returns the chain of blocks, if there is one.
    pub fn chain(&mut self) -> Option<&mut RxChain> {
        match self {
            Self::Chain(chain) => Some(chain),
            Self::Signal(_) | Self::Loopback(..) => None,
        }
    }
}
