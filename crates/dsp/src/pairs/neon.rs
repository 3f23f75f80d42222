//! The copies for ARM64. One instruction multiplies four numbers by one tap and adds to four sums.
//!
//! Eight outputs need the numbers from `n` on for tap `n`, and the eight after them need the same
//! numbers for the tap eight before it: so numbers are read once for all outputs.

use super::{BLOCK, Group, IntSample, LANES};
use crate::chunks::Chunks;
use std::arch::aarch64::*;
use std::arch::asm;

/// Taps of a vector, and outputs that share a tap vector's lane.
const WIDE: usize = 8;

/// Sums of eight outputs.
type Eight = [int32x4_t; 2];

/// Adds the products of eight rows of numbers, one position apart, with the tap of the same lane:
/// those of `taps[b]` to `sums[b]`, for every `b` in a range. Inline assembly, because the compiler
/// widens the numbers of the intrinsics first, and then has too few registers.
///
/// # Safety
/// `x` must point to fifteen numbers.
#[inline]
#[target_feature(enable = "neon")]
unsafe fn add_rows<const FROM: usize, const TO: usize, const B: usize>(
    taps: &[int16x8_t; B],
    x: *const i16,
    sums: &mut [Eight; B],
) {
    macro_rules! add {
        ($($j:literal)*) => {$(
            // SAFETY: by the caller's contract.
            let row = unsafe { vld1q_s16(x.add($j)) };
            for b in FROM..TO {
                let [low, high] = &mut sums[b];
                // SAFETY: every processor of this kind has the instructions.
                unsafe {
                    asm!(
                        concat!("smlal {low:v}.4s, {row:v}.4h, {taps:v}.h[", $j, "]"),
                        concat!("smlal2 {high:v}.4s, {row:v}.8h, {taps:v}.h[", $j, "]"),
                        low = inout(vreg) *low,
                        high = inout(vreg) *high,
                        row = in(vreg) row,
                        taps = in(vreg_low16) taps[b],
                        options(pure, nomem, nostack, preserves_flags),
                    );
                }
            }
        )*};
    }
    add!(0 1 2 3 4 5 6 7);
}

/// Returns eight taps.
#[inline]
#[target_feature(enable = "neon")]
fn eight(taps: &[[IntSample; WIDE / 2]], k: usize) -> int16x8_t {
    // SAFETY: the item has eight numbers.
    unsafe { vld1q_s16(taps[k].as_ptr().cast()) }
}

/// Computes [`super::correlate_plain`], bit for bit.
///
/// # Safety
/// `x` must hold numbers for all outputs and taps, and the number of tap pairs must be a multiple
/// of sixteen.
#[target_feature(enable = "neon")]
pub(super) unsafe fn correlate(
    taps: &[IntSample],
    x: &[i16],
    scale: f32,
    out: &mut [[f32; BLOCK]],
) {
    let taps = taps.in_chunks::<{ WIDE / 2 }>().0;
    for (n, out) in out.iter_mut().enumerate() {
        let x = x[n * BLOCK..].as_ptr();
        let mut sums = [[vdupq_n_s32(0); 2]; BLOCK / WIDE];
        let mut under = [vdupq_n_s16(0); BLOCK / WIDE];
        // Adds the products of the numbers from `k` vectors on, for outputs in a range of eights.
        macro_rules! add {
            ($k:expr, $from:literal..$to:literal) => {
                // SAFETY: by the caller's contract; `k` vectors and fourteen numbers more are at
                // most the last number under the last tap of the last output.
                unsafe {
                    add_rows::<$from, $to, { BLOCK / WIDE }>(&under, x.add($k * WIDE), &mut sums)
                }
            };
        }
        macro_rules! next {
            ($k:expr) => {
                under = [eight(taps, $k), under[0], under[1], under[2]]
            };
        }
        next!(0);
        add!(0, 0..1);
        next!(1);
        add!(1, 0..2);
        next!(2);
        add!(2, 0..3);
        for k in 3..taps.len() {
            next!(k);
            add!(k, 0..4);
        }
        let end = taps.len();
        under = [under[0], under[0], under[1], under[2]];
        add!(end, 1..4);
        under = [under[0], under[0], under[1], under[2]];
        add!(end + 1, 2..4);
        under = [under[0], under[0], under[1], under[2]];
        add!(end + 2, 3..4);
        for (out, sum) in out.in_chunks_mut::<4>().0.iter_mut().zip(sums.as_flattened()) {
            // SAFETY: four values have room.
            unsafe { vst1q_f32(out.as_mut_ptr(), vmulq_n_f32(vcvtq_f32_s32(*sum), scale)) };
        }
    }
}

/// Computes [`super::add_products_plain`], bit for bit.
///
/// # Safety
/// `x` must hold numbers for all sums and taps.
#[target_feature(enable = "neon")]
pub(super) unsafe fn add_products<const N: usize>(
    groups: &[Group<N>],
    x: &[i16],
    sums: &mut [i32; LANES],
) {
    let mut four = [0, 4, 8, 12].map(|n| {
        // SAFETY: sixteen sums are there.
        unsafe { vld1q_s32(sums.as_ptr().add(n)) }
    });
    // SAFETY: by the caller's contract.
    unsafe { add_products_to(groups, x, &mut four) };
    for (to, sum) in sums.in_chunks_mut::<4>().0.iter_mut().zip(four) {
        // SAFETY: four sums have room.
        unsafe { vst1q_s32(to.as_mut_ptr(), sum) };
    }
}

/// Does the same with sums in registers.
///
/// # Safety
/// `x` must hold numbers for all sums and taps, and the number of tap pairs must be a multiple of
/// sixteen.
#[inline]
#[target_feature(enable = "neon")]
pub(crate) unsafe fn add_products_to<const N: usize>(
    groups: &[Group<N>],
    x: &[i16],
    sums: &mut [int32x4_t; LANES / 4],
) {
    let mut eights = [[sums[0], sums[1]], [sums[2], sums[3]]];
    for group in groups {
        let taps = group.taps.in_chunks::<{ WIDE / 2 }>().0;
        // SAFETY: by the caller's contract, also below: from the last vector of taps on, fourteen
        // numbers more are at most the last number under the last tap of the last sum.
        let x = unsafe { x.as_ptr().add(group.start) };
        let mut under = [eight(taps, 0); 2];
        // SAFETY: as above.
        unsafe { add_rows::<0, 1, 2>(&under, x, &mut eights) };
        for k in 1..N * 2 / WIDE {
            under = [eight(taps, k), under[0]];
            // SAFETY: as above.
            unsafe { add_rows::<0, 2, 2>(&under, x.add(k * WIDE), &mut eights) };
        }
        under[1] = under[0];
        // SAFETY: as above.
        unsafe { add_rows::<1, 2, 2>(&under, x.add(2 * N), &mut eights) };
    }
    *sums = [eights[0][0], eights[0][1], eights[1][0], eights[1][1]];
}
