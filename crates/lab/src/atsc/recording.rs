//! A recording of a test signal.

use super::AtscError;
use millstream_atsc::Sample;
use millstream_atsc::params::{PACKET_BYTES, TS_RATE_BPS};
use millstream_atsc::tx::{Impairments, Numbered, TestSignal, TxConfig};
use millstream_flow::SC16_SCALE;
use millstream_flow::blocks::SampleFormat;
use millstream_output::{Existing, OutputFile};
use serde::Serialize;
use std::io::{BufWriter, Write};
use std::path::Path;

/// Samples made at once.
const BLOCK: usize = 16_384;

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
        let recorded = record(&mut out, SampleFormat::Sc16, self.samples(), fill, |_| true)?;
        out.complete()?;
        Ok(recorded)
    }
}

/// The result of a recording.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct RecordingResult {
    /// Samples.
    pub samples: u64,
    /// Parts of samples that were clipped at full scale, in integer formats.
    pub clipped: u64,
    /// Mean square of the samples.
    pub power: f64,
}

/// Writes the samples of `fill`. Before each block, calls `go_on` with the number of samples so
/// far; it returns whether to continue.
///
/// # Errors
/// [`AtscError::Output`] when the file cannot be written.
pub fn record(
    out: &mut OutputFile,
    format: SampleFormat,
    samples: u64,
    mut fill: impl FnMut(&mut [Sample]),
    mut go_on: impl FnMut(u64) -> bool,
) -> Result<RecordingResult, AtscError> {
    let mut out = BufWriter::new(out);
    let mut block = vec![Sample::default(); BLOCK];
    let mut bytes = Vec::with_capacity(format.sample_bytes() * BLOCK);
    let mut recorded = RecordingResult::default();
    while recorded.samples < samples && go_on(recorded.samples) {
        let count = (BLOCK as u64).min(samples - recorded.samples) as usize;
        let block = &mut block[..count];
        fill(block);
        recorded.power += block.iter().map(|x| f64::from(x.norm_sqr())).sum::<f64>();
        bytes.clear();
        for part in block.iter().flat_map(|sample| [sample.re, sample.im]) {
            if format == SampleFormat::Sc16 {
                recorded.clipped += u64::from(part.abs() > 1.0);
                // The cast clips.
                let whole = (part / SC16_SCALE).round_ties_even() as i16;
                bytes.extend(whole.to_le_bytes());
            } else {
                bytes.extend(part.to_le_bytes());
            }
        }
        out.write_all(&bytes).map_err(|error| out.get_ref().fail(error))?;
        recorded.samples += count as u64;
    }
    out.flush().map_err(|error| out.get_ref().fail(error))?;
    recorded.power /= recorded.samples.max(1) as f64;
    Ok(recorded)
}
