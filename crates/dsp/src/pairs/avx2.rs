//! Copies with AVX2. Even outputs use the numbers from an even index on, odd ones those from the
//! index after it.

#![expect(unsafe_op_in_unsafe_fn, reason = "all is unsafe as it needs a processor with AVX2")]

use super::{BLOCK, Group, IntSample, LANES};
use crate::chunks::Chunks;
use std::arch::x86_64::*;

/// Computes [`super::correlate_plain`], bit for bit.
///
/// # Safety
/// `x` must hold numbers for all outputs and taps.
#[target_feature(enable = "avx2")]
pub(super) unsafe fn correlate_256(
    taps: &[IntSample],
    x: &[i16],
    scale: f32,
    out: &mut [[f32; BLOCK]],
) {
    const WIDE: usize = BLOCK / 2;
    let scale = _mm256_set1_ps(scale);
    for (b, out) in out.iter_mut().enumerate() {
        let mut sums = [[_mm256_setzero_si256(); 2]; 2];
        for (j, tap) in taps.iter().enumerate() {
            let tap = _mm256_set1_epi32(bytemuck::cast(*tap));
            for (half, sums) in sums.iter_mut().enumerate() {
                for (odd, sum) in sums.iter_mut().enumerate() {
                    let at = b * BLOCK + half * WIDE + 2 * j + odd;
                    // SAFETY: by the caller's contract.
                    let x = unsafe { _mm256_loadu_si256(x.as_ptr().add(at).cast()) };
                    *sum = _mm256_add_epi32(*sum, _mm256_madd_epi16(x, tap));
                }
            }
        }
        for (out, sums) in out.in_chunks_mut::<WIDE>().0.iter_mut().zip(sums) {
            for (out, sum) in out.in_chunks_mut::<8>().0.iter_mut().zip(interleave(sums)) {
                let y = _mm256_mul_ps(_mm256_cvtepi32_ps(sum), scale);
                // SAFETY: eight values have room.
                unsafe { _mm256_storeu_ps(out.as_mut_ptr(), y) };
            }
        }
    }
}

/// Interleaves even and odd outputs.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) unsafe fn interleave([even, odd]: [__m256i; 2]) -> [__m256i; 2] {
    let [a, b] = [_mm256_unpacklo_epi32(even, odd), _mm256_unpackhi_epi32(even, odd)];
    [_mm256_permute2x128_si256(a, b, 0x20), _mm256_permute2x128_si256(a, b, 0x31)]
}

/// Computes [`super::add_products_plain`], bit for bit.
///
/// # Safety
/// `x` must hold numbers for all sums and taps.
#[target_feature(enable = "avx2")]
pub(super) unsafe fn add_products_256<const N: usize>(
    groups: &[Group<N>],
    x: &[i16],
    sums: &mut [i32; LANES],
) {
    let mut parts = [[_mm256_setzero_si256(); 2]; 4];
    for group in groups {
        for (j, tap) in group.taps.iter().enumerate() {
            let tap = _mm256_set1_epi32(bytemuck::cast(*tap));
            for (odd, part) in parts[j % 4].iter_mut().enumerate() {
                // SAFETY: by the caller's contract.
                let x =
                    unsafe { _mm256_loadu_si256(x.as_ptr().add(group.start + 2 * j + odd).cast()) };
                *part = _mm256_add_epi32(*part, _mm256_madd_epi16(x, tap));
            }
        }
    }
    for (to, sum) in sums.in_chunks_mut::<8>().0.iter_mut().zip(interleave(add_up(parts))) {
        let to = to.as_mut_ptr().cast::<__m256i>();
        // SAFETY: eight sums have room.
        unsafe { _mm256_storeu_si256(to, _mm256_add_epi32(_mm256_loadu_si256(to), sum)) };
    }
}

/// Returns the even and the odd sums, each from four parts.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) unsafe fn add_up([a, b, c, d]: [[__m256i; 2]; 4]) -> [__m256i; 2] {
    [0, 1].map(|odd| {
        _mm256_add_epi32(_mm256_add_epi32(a[odd], b[odd]), _mm256_add_epi32(c[odd], d[odd]))
    })
}
