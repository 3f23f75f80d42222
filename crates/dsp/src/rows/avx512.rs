//! Rows in 64-byte registers.

#![allow(clippy::incompatible_msrv, reason = "compiled only where the compiler has AVX-512")]

use super::{LANES, Rows};
use crate::pairs::{self, Group};
use std::arch::x86_64::*;

/// Rows in 64-byte registers. A value exists only where the processor has AVX-512 (F, BW, VL and
/// VNNI). For speed its callers must be compiled for these features.
#[derive(Clone, Copy, Debug)]
pub struct Avx512(());

impl Avx512 {
    /// Creates the value if the processor has the features.
    #[inline]
    #[must_use]
    pub fn new() -> Option<Self> {
        (crate::simd::has_vnni() && crate::simd::has_avx2_fma()).then_some(Self(()))
    }
}

/// Defines operations of one expression each.
macro_rules! operations {
    ($($name:ident($($x:ident: $X:ident),*) -> $Y:ident = $result:expr;)*) => {$(
        #[inline(always)]
        fn $name(self, $($x: Self::$X),*) -> Self::$Y {
            // SAFETY: `Avx512::new`, which alone makes `self`, has found the features.
            unsafe { $result }
        }
    )*};
}

impl Rows for Avx512 {
    type Float = __m512;
    type Whole = __m512i;
    type Mask = __mmask16;

    operations! {
        add(a: Float, b: Float) -> Float = _mm512_add_ps(a, b);
        sub(a: Float, b: Float) -> Float = _mm512_sub_ps(a, b);
        mul(a: Float, b: Float) -> Float = _mm512_mul_ps(a, b);
        madd(a: Float, b: Float, c: Float) -> Float = _mm512_fmadd_ps(a, b, c);
        min(a: Float, b: Float) -> Float = _mm512_min_ps(a, b);
        max(a: Float, b: Float) -> Float = _mm512_max_ps(a, b);
        abs(x: Float) -> Float = _mm512_abs_ps(x);
        less(a: Float, b: Float) -> Mask = _mm512_cmp_ps_mask::<_CMP_LT_OQ>(a, b);
        differ(a: Float, b: Float) -> Mask = _mm512_cmp_ps_mask::<_CMP_NEQ_UQ>(a, b);
        choose(mask: Mask, a: Float, b: Float) -> Float = _mm512_mask_blend_ps(mask, b, a);
        choose_whole(mask: Mask, a: Whole, b: Whole) -> Whole = _mm512_mask_blend_epi32(mask, b, a);
        floats_of(x: Whole) -> Float = _mm512_cvtepi32_ps(x);
        whole_add(a: Whole, b: Whole) -> Whole = _mm512_add_epi32(a, b);
        or(a: Whole, b: Whole) -> Whole = _mm512_or_si512(a, b);
        and(a: Whole, b: Whole) -> Whole = _mm512_and_si512(a, b);
    }

    #[inline(always)]
    fn load(self, x: &[f32; LANES]) -> Self::Float {
        // SAFETY: `Avx512::new`, which alone makes `self`, has found the features; the array has
        // room.
        unsafe { _mm512_loadu_ps(x.as_ptr()) }
    }
    #[inline(always)]
    fn store(self, x: Self::Float) -> [f32; LANES] {
        let mut to = [0.0; LANES];
        // SAFETY: `Avx512::new`, which alone makes `self`, has found the features; the array has
        // room.
        unsafe { _mm512_storeu_ps(to.as_mut_ptr(), x) };
        to
    }
    #[inline(always)]
    fn load_wholes(self, x: &[i32; LANES]) -> Self::Whole {
        // SAFETY: `Avx512::new`, which alone makes `self`, has found the features; the array has
        // room.
        unsafe { _mm512_loadu_si512(x.as_ptr().cast()) }
    }
    #[inline(always)]
    fn store_wholes(self, x: Self::Whole) -> [i32; LANES] {
        let mut to = [0; LANES];
        // SAFETY: `Avx512::new`, which alone makes `self`, has found the features; the array has
        // room.
        unsafe { _mm512_storeu_si512(to.as_mut_ptr().cast(), x) };
        to
    }
    #[inline(always)]
    fn store_16(self, x: Self::Whole, lanes: u16, to: &mut [i16; LANES]) {
        // SAFETY: `Avx512::new`, which alone makes `self`, has found the features; the array has
        // room.
        unsafe {
            let x = _mm512_maskz_cvtepi32_epi16(lanes, x);
            _mm256_storeu_si256(to.as_mut_ptr().cast(), x);
        }
    }
    #[inline(always)]
    fn floats(self, x: f32) -> Self::Float {
        // SAFETY: `Avx512::new`, which alone makes `self`, has found the features.
        unsafe { _mm512_set1_ps(x) }
    }
    #[inline(always)]
    fn wholes(self, x: i32) -> Self::Whole {
        // SAFETY: `Avx512::new`, which alone makes `self`, has found the features.
        unsafe { _mm512_set1_epi32(x) }
    }
    #[inline(always)]
    fn bits(self, mask: Self::Mask) -> u16 {
        mask
    }
    #[inline(always)]
    fn shift_left<const N: u32>(self, x: Self::Whole) -> Self::Whole {
        // SAFETY: `Avx512::new`, which alone makes `self`, has found the features.
        unsafe { _mm512_slli_epi32::<N>(x) }
    }
    #[inline(always)]
    fn shift_right<const N: u32>(self, x: Self::Whole) -> Self::Whole {
        // SAFETY: `Avx512::new`, which alone makes `self`, has found the features.
        unsafe { _mm512_srli_epi32::<N>(x) }
    }
    #[inline(always)]
    fn add_products<const N: usize>(
        self,
        groups: &[Group<N>],
        x: &[i16],
        sums: Self::Whole,
    ) -> Self::Whole {
        pairs::check(groups, x);
        // SAFETY: `Avx512::new` has found the features, and `check` that the slices hold all the
        // numbers read.
        unsafe { _mm512_add_epi32(sums, pairs::avx512::products(groups, x)) }
    }
}
