//! The signal processing of the DDC and DUC blocks: rate change, frequency shift and gain of one
//! channel, with their registers.
//!
//! "Blocks section n" names sections of the project's fact page `rfnoc-blocks-and-devices.md`.
//!
//! ```text
//! DDC: 16 bits ─▶ shift ─▶ CIC ─▶ half-bands ─▶ scale ─▶ 16 bits
//! DUC: 16 bits ─▶ half-bands ─▶ CIC ─▶ shift ─▶ scale ─▶ 16 bits
//! ```

mod down;
pub(crate) mod registers;
mod shifter;
mod up;

pub(crate) use down::Ddc;
pub(crate) use up::Duc;

use crate::antenna::{Sc16, parts, sc16};
use millstream_dsp::Sample;

/// The samples that a converter processes at once, at its faster side.
pub(crate) const PIECE: usize = 4096;

/// Reads samples as numbers of the last bit.
fn read(samples: &[Sc16], out: &mut [Sample]) {
    for (sample, out) in samples.iter().zip(out) {
        let [i, q] = parts(*sample);
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
    let part = |value: f32| rounded((value * gain).clamp(i16::MIN.into(), i16::MAX.into())) as i16;
    for (sample, out) in samples.iter().zip(out) {
        *out = sc16(part(sample.re), part(sample.im));
    }
}

#[cfg(test)]
pub(crate) mod test_signals;
