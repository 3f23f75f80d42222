//! Blocks of 16 samples in 512-bit registers (AVX-512F and BW).

#![expect(unsafe_op_in_unsafe_fn, reason = "all is unsafe for the one reason stated at `Engine`")]
#![allow(clippy::incompatible_msrv, reason = "compiled only where the compiler has AVX-512")]

use std::arch::x86_64::*;

use super::super::lanes::Engine;
use super::super::wire::Sc12;
use super::{SC12_GATHER, SC12_SPREAD, TOP};

pub(in super::super) struct Avx512;

/// The dwords of a register that 16 samples of 3 bytes fill.
const SC12_DWORDS: __mmask16 = 0x0FFF;

#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
unsafe fn put<const STREAM: bool>(at: *mut u8, value: __m512i) {
    if STREAM {
        _mm512_stream_si512(at.cast(), value);
    } else {
        _mm512_storeu_si512(at.cast(), value);
    }
}

/// Rounds; values that are too small become the smallest integer, and so stay negative.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
unsafe fn quantize(value: __m512) -> __m512i {
    let number = _mm512_cmp_ps_mask::<_CMP_ORD_Q>(value, value);
    _mm512_maskz_cvtps_epi32(number, _mm512_min_ps(value, _mm512_set1_ps(TOP)))
}

/// Does the same for eight doubles.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
unsafe fn quantize_pd(value: __m512d) -> __m256i {
    let number = _mm512_cmp_pd_mask::<_CMP_ORD_Q>(value, value);
    _mm512_maskz_cvtpd_epi32(number, _mm512_min_pd(value, _mm512_set1_pd(TOP.into())))
}

/// Saturates to 16-bit integers, in order.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
unsafe fn narrow(block: [__m512i; 2]) -> __m512i {
    let order = _mm512_setr_epi64(0, 2, 4, 6, 1, 3, 5, 7);
    _mm512_permutexvar_epi64(order, _mm512_packs_epi32(block[0], block[1]))
}

/// Returns both halves.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
unsafe fn halves(value: __m512i) -> [__m256i; 2] {
    [_mm512_castsi512_si256(value), _mm512_extracti64x4_epi64::<1>(value)]
}

/// Loads a block of floats times `scale`.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
unsafe fn scaled(at: *const u8, scale: f32) -> (__m512, __m512) {
    let scale = _mm512_set1_ps(scale);
    let (a, b) = (_mm512_loadu_ps(at.cast()), _mm512_loadu_ps(at.add(64).cast()));
    (_mm512_mul_ps(a, scale), _mm512_mul_ps(b, scale))
}

impl Engine for Avx512 {
    const SAMPLES: usize = 16;
    const STREAMS: bool = true;
    type Block = [__m512i; 2];

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw")]
    unsafe fn load_sc16(at: *const u8) -> Self::Block {
        let load = |by| _mm512_cvtepi16_epi32(_mm256_loadu_si256(at.add(by).cast()));
        [load(0), load(32)]
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw")]
    unsafe fn load_sc12(at: *const u8) -> Self::Block {
        let words = _mm512_maskz_loadu_epi32(SC12_DWORDS, at.cast());
        let lanes = _mm512_setr_epi32(0, 1, 2, 2, 3, 4, 5, 5, 6, 7, 8, 8, 9, 10, 11, 11);
        let words = _mm512_permutexvar_epi32(lanes, words);
        let spread = _mm512_broadcast_i32x4(_mm_loadu_si128(SC12_SPREAD.as_ptr().cast()));
        // Odd values move up by 4 bits, and then all down by 4 with their sign.
        let up = _mm512_set1_epi32(16 << 16 | 1);
        let high = _mm512_mullo_epi16(_mm512_shuffle_epi8(words, spread), up);
        let [low, high] = halves(_mm512_srai_epi16::<4>(high));
        [_mm512_cvtepi16_epi32(low), _mm512_cvtepi16_epi32(high)]
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw")]
    unsafe fn load_sc8(at: *const u8) -> Self::Block {
        let load = |by| _mm512_cvtepi8_epi32(_mm_loadu_si128(at.add(by).cast()));
        [load(0), load(16)]
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw")]
    unsafe fn load_fc32(at: *const u8, scale: f32) -> Self::Block {
        let (a, b) = scaled(at, scale);
        [quantize(a), quantize(b)]
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw")]
    unsafe fn load_fc64(at: *const u8, scale: f64) -> Self::Block {
        let scale = _mm512_set1_pd(scale);
        let load = |by| quantize_pd(_mm512_mul_pd(_mm512_loadu_pd(at.add(by).cast()), scale));
        let pair = |by| {
            let low = _mm512_castsi256_si512(load(by));
            _mm512_inserti64x4::<1>(low, load(by + 64))
        };
        [pair(0), pair(128)]
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw")]
    unsafe fn store_sc16<const STREAM: bool>(at: *mut u8, block: Self::Block) {
        put::<STREAM>(at, narrow(block));
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw")]
    unsafe fn store_sc12(at: *mut u8, block: Self::Block) {
        let (low, high) = Sc12::LIMITS;
        let values = _mm512_min_epi16(narrow(block), _mm512_set1_epi16(high));
        let values = _mm512_max_epi16(values, _mm512_set1_epi16(low));
        // I moves up by 12 bits, and Q without its sign goes below it.
        let values = _mm512_and_si512(values, _mm512_set1_epi32(0x0FFF_FFFF));
        let pairs = _mm512_madd_epi16(values, _mm512_set1_epi32(1 << 16 | 4096));
        let gather = _mm512_broadcast_i32x4(_mm_loadu_si128(SC12_GATHER.as_ptr().cast()));
        let lanes = _mm512_setr_epi32(0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, 3, 7, 11, 15);
        let words = _mm512_permutexvar_epi32(lanes, _mm512_shuffle_epi8(pairs, gather));
        _mm512_mask_storeu_epi32(at.cast(), SC12_DWORDS, words);
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw")]
    unsafe fn store_sc8(at: *mut u8, block: Self::Block) {
        _mm256_storeu_si256(at.cast(), _mm512_cvtsepi16_epi8(narrow(block)));
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw")]
    unsafe fn store_fc32<const STREAM: bool>(at: *mut u8, block: Self::Block, scale: f32) {
        let scale = _mm512_set1_ps(scale);
        for (part, integers) in block.into_iter().enumerate() {
            let scaled = _mm512_mul_ps(_mm512_cvtepi32_ps(integers), scale);
            put::<STREAM>(at.add(64 * part), _mm512_castps_si512(scaled));
        }
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw")]
    unsafe fn store_fc64<const STREAM: bool>(at: *mut u8, block: Self::Block, scale: f64) {
        let scale = _mm512_set1_pd(scale);
        for (part, integers) in block.into_iter().enumerate() {
            for (half, integers) in halves(integers).into_iter().enumerate() {
                let scaled = _mm512_mul_pd(_mm512_cvtepi32_pd(integers), scale);
                put::<STREAM>(at.add(128 * part + 64 * half), _mm512_castpd_si512(scaled));
            }
        }
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw")]
    unsafe fn fc32_to_sc16<const STREAM: bool>(from: *const u8, to: *mut u8, scale: f32) {
        let (a, b) = scaled(from, scale);
        let packed = narrow([_mm512_cvtps_epi32(a), _mm512_cvtps_epi32(b)]);
        // Values without an integer have become the smallest one, as those that are too small have.
        // Only a far too large signal holds any, so one check here costs less than a check of every
        // value.
        if _mm512_cmpeq_epi16_mask(packed, _mm512_set1_epi16(i16::MIN)) == 0 {
            put::<STREAM>(to, packed);
        } else {
            put::<STREAM>(to, narrow([quantize(a), quantize(b)]));
        }
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw")]
    unsafe fn rescale(block: Self::Block, scale: f32) -> Self::Block {
        let scale = _mm512_set1_ps(scale);
        let [a, b] = block;
        let times = |integers| quantize(_mm512_mul_ps(_mm512_cvtepi32_ps(integers), scale));
        [times(a), times(b)]
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw")]
    unsafe fn order_streams() {
        _mm_sfence();
    }
}
