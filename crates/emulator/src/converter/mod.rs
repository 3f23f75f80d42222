//! The signal processing of the DDC and DUC blocks: rate change, frequency shift and gain of one
//! channel, with their registers.
//!
//! "Blocks section n" names sections of the project's fact page `rfnoc-blocks-and-devices.md`.
//!
//! ```text
//! DDC: 16 bits ─▶ shift ─▶ CIC ─▶ half-bands ─▶ scale ─▶ 16 bits
//! DUC: 16 bits ─▶ half-bands ─▶ CIC ─▶ shift ─▶ scale ─▶ 16 bits
//! ```

mod cic;
mod down;
mod half_band;
pub(crate) mod registers;
mod shifter;
mod up;

pub(crate) use down::Ddc;
pub(crate) use up::Duc;

use crate::antenna::Sc16;
use millstream_dsp::Sample;

/// The samples that a converter processes at once, at its faster side.
pub(crate) const PIECE: usize = 4096;

/// Reads samples as numbers of the last bit.
fn read(samples: &[Sc16], out: &mut [Sample]) {
    for ([a, b, c, d], out) in samples.iter().zip(out) {
        let (i, q) = (i16::from_le_bytes([*a, *b]), i16::from_le_bytes([*c, *d]));
        *out = Sample::new(i.into(), q.into());
    }
}

/// Rounds a value below 2^22 to the nearest whole number, without the call that
/// [`f32::round_ties_even`] is on processors before SSE 4.1.
pub(crate) fn rounded(value: f32) -> f32 {
    // From here on an f32 has no fraction.
    const WHOLE: f32 = 12_582_912.0;
    (value + WHOLE) - WHOLE
}

/// Writes samples times `gain`, rounded and saturating.
fn write(samples: &[Sample], gain: f32, out: &mut [Sc16]) {
    let word = |value: f32| {
        (rounded((value * gain).clamp(i16::MIN.into(), i16::MAX.into())) as i16).to_le_bytes()
    };
    for (sample, out) in samples.iter().zip(out) {
        let ([a, b], [c, d]) = (word(sample.re), word(sample.im));
        *out = [a, b, c, d];
    }
}

#[cfg(test)]
pub(crate) mod test_signals;
