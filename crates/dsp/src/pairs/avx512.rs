//! Copies with AVX-512. Even outputs use the numbers from an even index on, odd ones those from the
//! index after it.

#![allow(clippy::incompatible_msrv, reason = "compiled only where the compiler has AVX-512")]

use super::avx2::{add_up, interleave};
use super::{BLOCK, Group, IntSample, LANES};
use crate::chunks::Chunks;
use std::arch::x86_64::*;

/// Computes [`super::correlate_plain`], bit for bit.
///
/// # Safety
/// `x` must hold numbers for all outputs and taps.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni")]
pub(super) unsafe fn correlate_512(
    taps: &[IntSample],
    x: &[i16],
    scale: f32,
    out: &mut [[f32; BLOCK]],
) {
    // Eight sums hide the latency of the instruction.
    let (twos, rest) = out.in_chunks_mut::<2>();
    for (b, two) in twos.iter_mut().enumerate() {
        // SAFETY: by the caller's contract.
        unsafe { blocks_512::<2, 2>(taps, &x[2 * b * BLOCK..], scale, two) };
    }
    if let [last] = rest {
        // SAFETY: by the caller's contract.
        unsafe {
            let x = &x[2 * twos.len() * BLOCK..];
            blocks_512::<1, 4>(taps, x, scale, std::array::from_mut(last));
        }
    }
}

/// Computes `V` blocks, in sums of every `PHASES`th pair of taps.
///
/// # Safety
/// `x` must hold numbers for all outputs and taps, and the number of tap pairs must be a multiple
/// of sixteen.
#[allow(clippy::needless_range_loop, reason = "sums lie by phase, and their number is a constant")]
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni")]
unsafe fn blocks_512<const V: usize, const PHASES: usize>(
    taps: &[IntSample],
    x: &[i16],
    scale: f32,
    out: &mut [[f32; BLOCK]; V],
) {
    let mut sums = [[[_mm512_setzero_si512(); 2]; V]; PHASES];
    for (k, taps) in taps.in_chunks::<16>().0.iter().enumerate() {
        for v in 0..V {
            for odd in 0..2 {
                let at = (k + v) * BLOCK + odd;
                // SAFETY: by the caller's contract; the sixteenth pair's window ends one pair
                // before the end of the second row.
                let [now, next] = unsafe {
                    let x = x.as_ptr().add(at);
                    [_mm512_loadu_si512(x.cast()), load_but_last(x.add(BLOCK))]
                };
                // The numbers under a pair of taps are extracted from two rows: reading them again
                // across cache lines costs more.
                macro_rules! add {
                    ($($j:literal)*) => {$(
                        let tap = _mm512_set1_epi32(bytemuck::cast(taps[$j]));
                        let under = _mm512_alignr_epi32::<$j>(next, now);
                        let sum = &mut sums[$j % PHASES][v][odd];
                        *sum = _mm512_dpwssd_epi32(*sum, under, tap);
                    )*};
                }
                add!(0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15);
            }
        }
    }
    let scale = _mm512_set1_ps(scale);
    let low = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
    let high = _mm512_add_epi32(low, _mm512_set1_epi32(8));
    for (v, out) in out.iter_mut().enumerate() {
        let [even, odd] = [0, 1].map(|odd| {
            let sum = sums
                .iter()
                .skip(1)
                .fold(sums[0][v][odd], |sum, phase| _mm512_add_epi32(sum, phase[v][odd]));
            _mm512_mul_ps(_mm512_cvtepi32_ps(sum), scale)
        });
        let to = out.as_mut_ptr();
        // SAFETY: a block has room for both vectors.
        unsafe {
            _mm512_storeu_ps(to, _mm512_permutex2var_ps(even, low, odd));
            _mm512_storeu_ps(to.add(BLOCK / 2), _mm512_permutex2var_ps(even, high, odd));
        }
    }
}

/// Loads thirty numbers, and zeros for the last two, which may not exist.
///
/// # Safety
/// `x` must point to thirty numbers.
#[inline]
#[target_feature(enable = "avx512f")]
unsafe fn load_but_last(x: *const i16) -> __m512i {
    // SAFETY: by the caller's contract.
    unsafe { _mm512_maskz_loadu_epi32(0x7FFF, x.cast()) }
}

/// Computes [`super::add_products_plain`], bit for bit.
///
/// # Safety
/// `x` must hold numbers for all sums and taps.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni")]
pub(super) unsafe fn add_products_512<const N: usize>(
    groups: &[Group<N>],
    x: &[i16],
    sums: &mut [i32; LANES],
) {
    // SAFETY: by the caller's contract; sixteen sums have room.
    unsafe {
        let to = sums.as_mut_ptr().cast();
        _mm512_storeu_si512(to, _mm512_add_epi32(_mm512_loadu_si512(to), products(groups, x)));
    }
}

/// Returns the values that [`super::add_products_plain`] adds.
///
/// # Safety
/// `x` must hold numbers for all sums and taps, and the number of tap pairs must be a multiple of
/// sixteen.
#[allow(clippy::needless_range_loop, reason = "sums lie by phase, and their number is a constant")]
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni")]
pub(crate) unsafe fn products<const N: usize>(groups: &[Group<N>], x: &[i16]) -> __m512i {
    let mut parts = [[_mm256_setzero_si256(); 2]; 4];
    for group in groups {
        for (k, taps) in group.taps.in_chunks::<16>().0.iter().enumerate() {
            for odd in 0..2 {
                // SAFETY: by the caller's contract; the sixteenth pair's window ends one pair
                // before the end of the third row.
                let rows = unsafe {
                    let x = x.as_ptr().add(group.start + 32 * k + odd);
                    [
                        _mm256_loadu_si256(x.cast()),
                        _mm256_loadu_si256(x.add(LANES).cast()),
                        _mm256_maskz_loadu_epi32(0x7F, x.add(2 * LANES).cast()),
                    ]
                };
                macro_rules! add {
                    ($($j:literal)*) => {$(
                        let tap = _mm256_set1_epi32(bytemuck::cast(taps[$j]));
                        let (now, next) = (rows[$j / 8], rows[$j / 8 + 1]);
                        let under = _mm256_alignr_epi32::<{ $j % 8 }>(next, now);
                        let part = &mut parts[$j % 4][odd];
                        *part = _mm256_dpwssd_epi32(*part, under, tap);
                    )*};
                }
                add!(0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15);
            }
        }
    }
    // SAFETY: the processor has AVX2, too.
    let [low, high] = unsafe { interleave(add_up(parts)) };
    _mm512_inserti64x4::<1>(_mm512_castsi256_si512(low), high)
}
