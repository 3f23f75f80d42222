//! The received signals of a channel: sample sources with a specification string.

mod atsc;
mod file;
mod live;
mod noise;
mod ramp;
mod sigmf;
mod spec;
mod tone;

pub(crate) use atsc::atsc_antenna;
pub use file::FileAntenna;
pub(crate) use file::open_regular;
pub use noise::NoiseAntenna;
pub(crate) use noise::NormalNoise;
pub use ramp::RampAntenna;
pub(crate) use sigmf::recording;
pub use spec::{AntennaSource, DELAY_SAMPLES_MAX, Loopback, forms, source};
pub use tone::ToneAntenna;

/// One complex sample in wire format: I then Q, little-endian signed 16 bit, 32767 = full scale.
pub type Sc16 = [u8; 4];

/// A source of samples.
///
/// Unless documented otherwise the content is a pure function of the timestamp, so that received
/// samples can be checked exactly.
pub trait Antenna: Send {
    /// Sets the radio's new rate; called before the first [`Antenna::fill`] at that rate.
    fn prepare(&mut self, rate_hz: f64);

    /// Writes the samples with the timestamps `tick..tick + out.len()`.
    ///
    /// Never blocks for long and never fails: unavailable samples are zero and counted.
    fn fill(&mut self, tick: u64, out: &mut [Sc16]);

    /// Returns how many samples were replaced by zeros so far, because the source had none in time.
    fn starved_samples(&self) -> u64 {
        0
    }
}

/// Joins I and Q into a sample.
#[inline]
pub(crate) fn sc16(i: i16, q: i16) -> Sc16 {
    let ([a, b], [c, d]) = (i.to_le_bytes(), q.to_le_bytes());
    [a, b, c, d]
}

/// Returns I and Q of a sample.
#[inline]
pub(crate) fn parts([a, b, c, d]: Sc16) -> [i16; 2] {
    [i16::from_le_bytes([a, b]), i16::from_le_bytes([c, d])]
}

/// Converts a real value to 16 bits, 1.0 = 32767, rounded to nearest, saturating.
fn quantise(value: f64) -> i16 {
    (value * 32767.0).round().clamp(-32768.0, 32767.0) as i16
}

/// Builds an antenna that is a signal.
#[cfg(test)]
fn parse(spec: &str) -> Result<Box<dyn Antenna>, crate::Error> {
    match source(spec)? {
        AntennaSource::Signal(antenna) => Ok(antenna),
        AntennaSource::Loopback(_) => panic!("{spec} is no signal"),
    }
}
