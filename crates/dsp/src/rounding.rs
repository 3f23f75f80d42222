//! Rounding to 16 bits inside a kernel.

/// The largest 16-bit part.
pub(crate) const MOST: f32 = i16::MAX as f32;

/// Adding this number rounds a small number to an integer in the low bits.
const ROUND: f32 = 12_582_912.0;

/// Returns a number, clipped to ±32767, as an integer in the low 16 bits.
#[inline(always)]
pub(crate) fn whole(x: f32) -> u32 {
    (cut(x) + ROUND).to_bits()
}

/// Clips a number to 16 bits on both sides, by two instructions.
#[inline(always)]
fn cut(x: f32) -> f32 {
    let x = if x > -MOST { x } else { -MOST };
    if x < MOST { x } else { MOST }
}
