//! A recording of a test signal.

use super::AtscError;
use millstream_atsc::Sample;
use millstream_atsc::params::{PACKET_BYTES, TS_RATE_BPS};
use millstream_atsc::tx::{Impairments, Numbered, RecordingResult, TestSignal, TxConfig, record};
use millstream_flow::blocks::SampleFormat;
use millstream_output::{Existing, OutputFile};
use serde::Serialize;
use std::path::Path;

/// The parameters of a recording.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Recording {
    /// Complex samples per second.
    pub rate_hz: f64,
    /// Length.
    pub seconds: f64,
    /// Seed of packets and noise.
    pub seed: u64,
    /// The impairments of the signal.
    #[serde(skip)]
    pub impairments: Impairments,
}

impl Recording {
    /// Its number of samples.
    #[must_use]
    pub fn samples(&self) -> u64 {
        (self.seconds * self.rate_hz).round() as u64
    }

    /// The packets in it.
    #[must_use]
    pub fn packets(&self) -> Numbered {
        Numbered::new(self.seed)
    }

    /// The packet on air `time_s` after the start.
    #[must_use]
    pub fn packet_at(&self, time_s: f64) -> u64 {
        (time_s.max(0.0) * TS_RATE_BPS / (8 * PACKET_BYTES) as f64) as u64
    }

    /// Writes it as interleaved 16-bit integers, full scale 32767.
    ///
    /// # Errors
    /// [`AtscError`] when the signal does not exist or the file cannot be written.
    pub fn write(&self, path: &Path) -> Result<RecordingResult, AtscError> {
        let config = TxConfig { sample_rate_hz: self.rate_hz, ..TxConfig::default() };
        let mut signal = TestSignal::new(config, &self.impairments, self.seed)?;
        let mut packets = self.packets();
        let fill = |samples: &mut [Sample]| {
            signal.generate(&mut |packet| packets.next_packet(packet), samples);
        };
        let mut out = OutputFile::create(path, Existing::Replace)?;
        let recorded = record(&mut out, SampleFormat::Sc16, self.samples(), fill, |_| true)
            .map_err(|error| out.fail(error))?;
        out.complete()?;
        Ok(recorded)
    }
}
