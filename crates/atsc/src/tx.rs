//! The transmitter: transport stream packets in, complex baseband samples out.

mod adjacent;
mod frame;
mod impairment_error;
mod impairments;
mod numbered;
mod pcr;
pub mod quality;
mod record;
mod restamp;
mod shaper;
mod test_signal;
mod ts_source;

pub use adjacent::Adjacent;
pub use frame::FrameBuilder;
pub use impairment_error::ImpairmentError;
pub use impairments::{CHANNEL_HZ, Impairments, in_nyquist_bandwidth};
pub use millstream_dsp::impair::{Echo, EchoError};
pub use numbered::Numbered;
pub use record::{RecordingResult, record};
pub use shaper::Shaper;
pub use test_signal::TestSignal;
pub use ts_source::{MultiplexPacket, TsError, TsMode, TsSource};

use crate::Sample;
use crate::params::{MIN_SAMPLE_RATE_HZ, PACKET_BYTES, SEGMENT_SYMBOLS};

/// The highest sample rate of the transmitter.
pub const MAX_SAMPLE_RATE_HZ: f64 = 200.0e6;

/// The transmitter's configuration.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TxConfig {
    /// Complex samples per second, from 5.45 MS/s.
    pub sample_rate_hz: f64,
    /// Root mean square of the complex samples; peaks reach about three times that.
    pub rms: f32,
}

impl Default for TxConfig {
    /// Returns 6.25 MS/s at an RMS of 0.2, which leaves head room for peaks in a full scale of one.
    fn default() -> Self {
        Self { sample_rate_hz: 6.25e6, rms: 0.2 }
    }
}

/// The transmitter cannot be created.
#[derive(Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum TransmitterError {
    /// The sample rate is outside the transmitter's range.
    #[error(
        "the sample rate is {rate_hz} Hz, at which an ATSC channel cannot be transmitted: choose \
         a rate from {MIN_SAMPLE_RATE_HZ} to {MAX_SAMPLE_RATE_HZ} Hz"
    )]
    SampleRate {
        /// The requested rate.
        rate_hz: f64,
    },
    /// The level is not a positive number.
    #[error("the transmit level is {rms} RMS: choose a level above 0, for example 0.2")]
    Level {
        /// The requested level.
        rms: f32,
    },
}

/// The complete transmitter.
///
/// The middle of the channel is at 0 Hz and the pilot at -2.690559 MHz.
///
/// ```
/// use millstream_atsc::{Sample, tx::{Transmitter, TxConfig}};
///
/// let mut transmitter = Transmitter::new(TxConfig::default()).unwrap();
/// let mut samples = vec![Sample::default(); 10_000];
/// let mut null_packets = |packet: &mut [u8; 188]| {
///     packet.fill(0xFF);
///     packet[..4].copy_from_slice(&[0x47, 0x1F, 0xFF, 0x10]);
/// };
/// transmitter.generate(&mut null_packets, &mut samples);
/// ```
#[derive(Clone, Debug)]
pub struct Transmitter {
    frame: FrameBuilder,
    shaper: Shaper,
    segment: [f32; SEGMENT_SYMBOLS],
}

impl Transmitter {
    /// Creates a transmitter at the start of a field.
    ///
    /// # Errors
    /// [`TransmitterError`] when the configuration makes no sense.
    pub fn new(config: TxConfig) -> Result<Self, TransmitterError> {
        Self::with_clock_error(config, 0.0)
    }

    /// Creates a transmitter whose symbol clock is fast by `clock_ppm`, or slow if that is
    /// negative. Pulses are evaluated at the shifted times, without interpolation.
    ///
    /// # Errors
    /// [`TransmitterError`] when the configuration makes no sense.
    pub fn with_clock_error(config: TxConfig, clock_ppm: f64) -> Result<Self, TransmitterError> {
        let TxConfig { sample_rate_hz, rms } = config;
        if !(MIN_SAMPLE_RATE_HZ..=MAX_SAMPLE_RATE_HZ).contains(&sample_rate_hz) {
            return Err(TransmitterError::SampleRate { rate_hz: sample_rate_hz });
        }
        if !(rms.is_finite() && rms > 0.0) {
            return Err(TransmitterError::Level { rms });
        }
        Ok(Self {
            frame: FrameBuilder::new(),
            shaper: Shaper::new(sample_rate_hz / (1.0 + clock_ppm * 1e-6), rms),
            segment: [0.0; SEGMENT_SYMBOLS],
        })
    }

    /// Fills `out`, and requests packets as they are needed.
    ///
    /// `next_packet` overwrites the buffer with the next transport stream packet; its first byte
    /// (the sync byte) is not transmitted. Four packets are requested at a time.
    pub fn generate(
        &mut self,
        next_packet: &mut dyn FnMut(&mut [u8; PACKET_BYTES]),
        out: &mut [Sample],
    ) {
        let mut rest = out;
        loop {
            let made = self.shaper.produce(rest);
            rest = &mut rest[made..];
            if rest.is_empty() {
                return;
            }
            self.frame.next_segment(next_packet, &mut self.segment);
            self.shaper.push(&self.segment);
        }
    }
}
