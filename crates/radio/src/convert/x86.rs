//! The AVX2 and AVX-512 forms.
//!
//! All 16-bit integers are exact as `f32` and each result is one multiplication, so the bits equal
//! those of the reference. On the way back the value is clamped before it is rounded, which gives
//! the same result as rounding first because both limits are integers.

use std::arch::x86_64::*;

use num_complex::Complex32;

use super::scalar;

const LOW: f32 = i16::MIN as f32;
const HIGH: f32 = i16::MAX as f32;

/// # Safety
/// The processor has AVX2; `wire` has four bytes for each element of `out`.
#[target_feature(enable = "avx2")]
pub(super) unsafe fn sc16_to_fc32_avx2(wire: &[u8], out: &mut [Complex32], scale: f32) {
    const STEP: usize = 4;
    let factor = _mm256_set1_ps(scale);
    let vectors = out.len() / STEP;
    for index in 0..vectors {
        // SAFETY: `index * STEP + STEP` samples lie within both slices; loads and stores are
        // unaligned, and a Complex32 is two f32 in a row (`repr(C)`).
        unsafe {
            let words = _mm_loadu_si128(wire.as_ptr().add(index * STEP * 4).cast());
            let floats = _mm256_cvtepi32_ps(_mm256_cvtepi16_epi32(words));
            let place = out.as_mut_ptr().add(index * STEP).cast();
            _mm256_storeu_ps(place, _mm256_mul_ps(floats, factor));
        }
    }
    scalar::sc16_to_fc32(&wire[vectors * STEP * 4..], &mut out[vectors * STEP..], scale);
}

/// # Safety
/// The processor has AVX-512F; `wire` has four bytes for each element of `out`.
#[target_feature(enable = "avx512f")]
pub(super) unsafe fn sc16_to_fc32_avx512(wire: &[u8], out: &mut [Complex32], scale: f32) {
    const STEP: usize = 8;
    let factor = _mm512_set1_ps(scale);
    let vectors = out.len() / STEP;
    for index in 0..vectors {
        // SAFETY: `index * STEP + STEP` samples lie within both slices; loads and stores are
        // unaligned, and a Complex32 is two f32 in a row (`repr(C)`).
        unsafe {
            let words = _mm256_loadu_si256(wire.as_ptr().add(index * STEP * 4).cast());
            let floats = _mm512_cvtepi32_ps(_mm512_cvtepi16_epi32(words));
            let place = out.as_mut_ptr().add(index * STEP).cast();
            _mm512_storeu_ps(place, _mm512_mul_ps(floats, factor));
        }
    }
    scalar::sc16_to_fc32(&wire[vectors * STEP * 4..], &mut out[vectors * STEP..], scale);
}

/// # Safety
/// The processor has AVX2; `out` has four bytes for each element of `samples`.
#[target_feature(enable = "avx2")]
pub(super) unsafe fn fc32_to_sc16_avx2(samples: &[Complex32], out: &mut [u8], scale: f32) {
    const STEP: usize = 4;
    let factor = _mm256_set1_ps(scale);
    let (low, high) = (_mm256_set1_ps(LOW), _mm256_set1_ps(HIGH));
    let vectors = samples.len() / STEP;
    for index in 0..vectors {
        // SAFETY: `index * STEP + STEP` samples lie within both slices; loads and stores are
        // unaligned, and a Complex32 is two f32 in a row (`repr(C)`).
        unsafe {
            let place = samples.as_ptr().add(index * STEP).cast();
            let scaled = _mm256_mul_ps(_mm256_loadu_ps(place), factor);
            let number = _mm256_cmp_ps::<_CMP_ORD_Q>(scaled, scaled);
            let inside = _mm256_min_ps(_mm256_max_ps(scaled, low), high);
            let words = _mm256_cvtps_epi32(_mm256_and_ps(inside, number));
            let narrow = _mm_packs_epi32(
                _mm256_castsi256_si128(words),
                _mm256_extracti128_si256::<1>(words),
            );
            _mm_storeu_si128(out.as_mut_ptr().add(index * STEP * 4).cast(), narrow);
        }
    }
    scalar::fc32_to_sc16(&samples[vectors * STEP..], &mut out[vectors * STEP * 4..], scale);
}

/// # Safety
/// The processor has AVX-512F; `out` has four bytes for each element of `samples`.
#[target_feature(enable = "avx512f")]
pub(super) unsafe fn fc32_to_sc16_avx512(samples: &[Complex32], out: &mut [u8], scale: f32) {
    const STEP: usize = 8;
    let factor = _mm512_set1_ps(scale);
    let (low, high) = (_mm512_set1_ps(LOW), _mm512_set1_ps(HIGH));
    let vectors = samples.len() / STEP;
    for index in 0..vectors {
        // SAFETY: `index * STEP + STEP` samples lie within both slices; loads and stores are
        // unaligned, and a Complex32 is two f32 in a row (`repr(C)`).
        unsafe {
            let place = samples.as_ptr().add(index * STEP).cast();
            let scaled = _mm512_mul_ps(_mm512_loadu_ps(place), factor);
            let number = _mm512_cmp_ps_mask::<_CMP_ORD_Q>(scaled, scaled);
            let inside = _mm512_min_ps(_mm512_max_ps(scaled, low), high);
            let words = _mm512_maskz_cvtps_epi32(number, inside);
            let narrow = _mm512_cvtsepi32_epi16(words);
            _mm256_storeu_si256(out.as_mut_ptr().add(index * STEP * 4).cast(), narrow);
        }
    }
    scalar::fc32_to_sc16(&samples[vectors * STEP..], &mut out[vectors * STEP * 4..], scale);
}
