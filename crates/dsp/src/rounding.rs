//! Rounding to 16 bits inside a kernel.

/// The largest 16-bit part.
pub(crate) const MOST: f32 = i16::MAX as f32;

/// Adding this rounds a small number to a whole one, and leaves it in the low bits.
const ROUND: f32 = 12_582_912.0;

/// A number, cut to ±32767, as a whole one in the low 16 bits.
#[inline(always)]
pub(crate) fn whole(x: f32) -> u32 {
    (cut(x) + ROUND).to_bits()
}

/// Cut to 16 bits on both sides, as two instructions do it.
#[inline(always)]
fn cut(x: f32) -> f32 {
    let x = if x > -MOST { x } else { -MOST };
    if x < MOST { x } else { MOST }
}
