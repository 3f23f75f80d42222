//! Samples of a signal as a file.

use crate::Sample;
use millstream_flow::SC16_SCALE;
use millstream_flow::blocks::SampleFormat;
use serde::Serialize;
use std::io::{self, BufWriter, Write};

/// Samples made at once.
const BLOCK: usize = 16_384;

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
/// Those of `out`.
pub fn record(
    out: &mut impl Write,
    format: SampleFormat,
    samples: u64,
    mut fill: impl FnMut(&mut [Sample]),
    mut go_on: impl FnMut(u64) -> bool,
) -> io::Result<RecordingResult> {
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
        out.write_all(&bytes)?;
        recorded.samples += count as u64;
    }
    out.flush()?;
    recorded.power /= recorded.samples.max(1) as f64;
    Ok(recorded)
}
