//! The sampler in vectors, by hand: the compiler, left to itself, vectorises across the sums.

use super::{GROUP, Group, LANES, Sampler, Times};
use std::arch::x86_64::*;

/// Values of an AVX-512 vector.
const WIDE_LANES: usize = 16;

/// Whether this processor runs [`sample_512`].
pub(super) fn has_avx512() -> bool {
    is_x86_feature_detected!("avx512f")
}

/// Four sums of eight lanes, side by side.
#[inline]
#[target_feature(enable = "avx2,fma")]
fn add_across([a, b, c, d]: [__m256; GROUP]) -> [f32; GROUP] {
    let sums = _mm256_hadd_ps(_mm256_hadd_ps(a, b), _mm256_hadd_ps(c, d));
    let sums = _mm_add_ps(_mm256_castps256_ps128(sums), _mm256_extractf128_ps::<1>(sums));
    let mut out = [0.0; GROUP];
    // SAFETY: the array has room for the four values.
    unsafe { _mm_storeu_ps(out.as_mut_ptr(), sums) };
    out
}

#[inline]
#[target_feature(enable = "avx2,fma")]
fn load(x: &[f32; LANES]) -> __m256 {
    // SAFETY: eight values are there.
    unsafe { _mm256_loadu_ps(x.as_ptr()) }
}

#[inline]
#[target_feature(enable = "avx512f")]
fn load_wide(x: &[f32; WIDE_LANES]) -> __m512 {
    // SAFETY: sixteen values are there.
    unsafe { _mm512_loadu_ps(x.as_ptr()) }
}

/// [`super::sample_body`] with AVX2 and fused multiply-add.
#[target_feature(enable = "avx2,fma")]
pub(super) fn sample_256(
    sampler: &Sampler,
    times: Times,
    rows: [&[f32]; 2],
    out_re: &mut [[f32; GROUP]],
    out_im: &mut [[f32; GROUP]],
) {
    let (mut at, step) = sampler.fixed(times);
    for (out_re, out_im) in out_re.iter_mut().zip(out_im) {
        let Group { re, im, taps: [a, b, c, d] } = sampler.group(at, step, rows);
        at += step * GROUP as u64;
        let (a, b) = (a.as_chunks::<LANES>().0, b.as_chunks::<LANES>().0);
        let (c, d) = (c.as_chunks::<LANES>().0, d.as_chunks::<LANES>().0);
        let (re, im) = (re.as_chunks::<LANES>().0, im.as_chunks::<LANES>().0);
        let mut sums_re = [_mm256_setzero_ps(); GROUP];
        let mut sums_im = sums_re;
        for (((((re, im), a), b), c), d) in re.iter().zip(im).zip(a).zip(b).zip(c).zip(d) {
            let (re, im) = (load(re), load(im));
            let taps = [load(a), load(b), load(c), load(d)];
            for i in 0..GROUP {
                sums_re[i] = _mm256_fmadd_ps(taps[i], re, sums_re[i]);
                sums_im[i] = _mm256_fmadd_ps(taps[i], im, sums_im[i]);
            }
        }
        (*out_re, *out_im) = (add_across(sums_re), add_across(sums_im));
    }
}

/// [`super::sample_body`] with AVX-512.
#[target_feature(enable = "avx512f,avx2,fma")]
pub(super) fn sample_512(
    sampler: &Sampler,
    times: Times,
    rows: [&[f32]; 2],
    out_re: &mut [[f32; GROUP]],
    out_im: &mut [[f32; GROUP]],
) {
    let (mut at, step) = sampler.fixed(times);
    for (out_re, out_im) in out_re.iter_mut().zip(out_im) {
        let Group { re, im, taps: [a, b, c, d] } = sampler.group(at, step, rows);
        at += step * GROUP as u64;
        let (a, b) = (a.as_chunks::<WIDE_LANES>().0, b.as_chunks::<WIDE_LANES>().0);
        let (c, d) = (c.as_chunks::<WIDE_LANES>().0, d.as_chunks::<WIDE_LANES>().0);
        let (re, im) = (re.as_chunks::<WIDE_LANES>().0, im.as_chunks::<WIDE_LANES>().0);
        let mut sums_re = [_mm512_setzero_ps(); GROUP];
        let mut sums_im = sums_re;
        for (((((re, im), a), b), c), d) in re.iter().zip(im).zip(a).zip(b).zip(c).zip(d) {
            let (re, im) = (load_wide(re), load_wide(im));
            let taps = [load_wide(a), load_wide(b), load_wide(c), load_wide(d)];
            for i in 0..GROUP {
                sums_re[i] = _mm512_fmadd_ps(taps[i], re, sums_re[i]);
                sums_im[i] = _mm512_fmadd_ps(taps[i], im, sums_im[i]);
            }
        }
        (*out_re, *out_im) = (add_across(halve(sums_re)), add_across(halve(sums_im)));
    }
}

/// The upper halves added to the lower ones.
#[inline]
#[target_feature(enable = "avx512f,avx2,fma")]
fn halve(sums: [__m512; GROUP]) -> [__m256; GROUP] {
    let mut halves = [_mm256_setzero_ps(); GROUP];
    for (half, sum) in halves.iter_mut().zip(sums) {
        let upper = _mm256_castpd_ps(_mm512_extractf64x4_pd::<1>(_mm512_castps_pd(sum)));
        *half = _mm256_add_ps(_mm512_castps512_ps256(sum), upper);
    }
    halves
}
