//! Blocks of 8 samples in 256-bit registers (AVX2).

#![expect(unsafe_op_in_unsafe_fn, reason = "all is unsafe for the one reason stated at `Engine`")]

use std::arch::x86_64::*;

use super::super::lanes::Engine;
use super::super::wire::Sc12;
use super::{SC12_GATHER, SC12_SPREAD, TOP};

pub(in super::super) struct Avx2;

#[inline]
#[target_feature(enable = "avx2")]
unsafe fn put<const STREAM: bool>(at: *mut u8, value: __m256i) {
    if STREAM {
        _mm256_stream_si256(at.cast(), value);
    } else {
        _mm256_storeu_si256(at.cast(), value);
    }
}

/// Rounds; values that are too small become the smallest integer, and so stay negative.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn quantize(value: __m256) -> __m256i {
    let number = _mm256_cmp_ps::<_CMP_ORD_Q>(value, value);
    let below = _mm256_min_ps(value, _mm256_set1_ps(TOP));
    _mm256_cvtps_epi32(_mm256_and_ps(below, number))
}

/// Does the same for four doubles.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn quantize_pd(value: __m256d) -> __m128i {
    let number = _mm256_cmp_pd::<_CMP_ORD_Q>(value, value);
    let below = _mm256_min_pd(value, _mm256_set1_pd(TOP.into()));
    _mm256_cvtpd_epi32(_mm256_and_pd(below, number))
}

/// Saturates to 16-bit integers, in order.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn narrow(block: [__m256i; 2]) -> __m256i {
    _mm256_permute4x64_epi64::<0b11_01_10_00>(_mm256_packs_epi32(block[0], block[1]))
}

/// Returns both halves.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn halves(value: __m256i) -> [__m128i; 2] {
    [_mm256_castsi256_si128(value), _mm256_extracti128_si256::<1>(value)]
}

/// Returns the dwords of a register that 8 samples of 3 bytes fill.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn sc12_dwords() -> __m256i {
    _mm256_setr_epi32(-1, -1, -1, -1, -1, -1, 0, 0)
}

impl Engine for Avx2 {
    const SAMPLES: usize = 8;
    const STREAMS: bool = true;
    type Block = [__m256i; 2];

    #[inline]
    #[target_feature(enable = "avx2")]
    unsafe fn load_sc16(at: *const u8) -> Self::Block {
        let load = |by| _mm256_cvtepi16_epi32(_mm_loadu_si128(at.add(by).cast()));
        [load(0), load(16)]
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    unsafe fn load_sc12(at: *const u8) -> Self::Block {
        let words = _mm256_maskload_epi32(at.cast(), sc12_dwords());
        let lanes = _mm256_setr_epi32(0, 1, 2, 2, 3, 4, 5, 5);
        let words = _mm256_permutevar8x32_epi32(words, lanes);
        let spread = _mm_loadu_si128(SC12_SPREAD.as_ptr().cast());
        let values = _mm256_shuffle_epi8(words, _mm256_broadcastsi128_si256(spread));
        // Odd values move up by 4 bits, and then all down by 4 with their sign.
        let high = _mm256_mullo_epi16(values, _mm256_set1_epi32(16 << 16 | 1));
        let [low, high] = halves(_mm256_srai_epi16::<4>(high));
        [_mm256_cvtepi16_epi32(low), _mm256_cvtepi16_epi32(high)]
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    unsafe fn load_sc8(at: *const u8) -> Self::Block {
        let load = |by| _mm256_cvtepi8_epi32(_mm_loadl_epi64(at.add(by).cast()));
        [load(0), load(8)]
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    unsafe fn load_fc32(at: *const u8, scale: f32) -> Self::Block {
        let scale = _mm256_set1_ps(scale);
        let load = |by| quantize(_mm256_mul_ps(_mm256_loadu_ps(at.add(by).cast()), scale));
        [load(0), load(32)]
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    unsafe fn load_fc64(at: *const u8, scale: f64) -> Self::Block {
        let scale = _mm256_set1_pd(scale);
        let load = |by| quantize_pd(_mm256_mul_pd(_mm256_loadu_pd(at.add(by).cast()), scale));
        let pair = |by| _mm256_set_m128i(load(by + 32), load(by));
        [pair(0), pair(64)]
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    unsafe fn store_sc16<const STREAM: bool>(at: *mut u8, block: Self::Block) {
        put::<STREAM>(at, narrow(block));
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    unsafe fn store_sc12(at: *mut u8, block: Self::Block) {
        let (low, high) = Sc12::LIMITS;
        let values = _mm256_min_epi16(narrow(block), _mm256_set1_epi16(high));
        let values = _mm256_max_epi16(values, _mm256_set1_epi16(low));
        // I moves up by 12 bits, and Q without its sign goes below it.
        let values = _mm256_and_si256(values, _mm256_set1_epi32(0x0FFF_FFFF));
        let pairs = _mm256_madd_epi16(values, _mm256_set1_epi32(1 << 16 | 4096));
        let gather = _mm_loadu_si128(SC12_GATHER.as_ptr().cast());
        let words = _mm256_shuffle_epi8(pairs, _mm256_broadcastsi128_si256(gather));
        let lanes = _mm256_setr_epi32(0, 1, 2, 4, 5, 6, 3, 7);
        let words = _mm256_permutevar8x32_epi32(words, lanes);
        _mm256_maskstore_epi32(at.cast(), sc12_dwords(), words);
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    unsafe fn store_sc8(at: *mut u8, block: Self::Block) {
        let [low, high] = halves(narrow(block));
        _mm_storeu_si128(at.cast(), _mm_packs_epi16(low, high));
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    unsafe fn store_fc32<const STREAM: bool>(at: *mut u8, block: Self::Block, scale: f32) {
        let scale = _mm256_set1_ps(scale);
        for (part, integers) in block.into_iter().enumerate() {
            let scaled = _mm256_mul_ps(_mm256_cvtepi32_ps(integers), scale);
            put::<STREAM>(at.add(32 * part), _mm256_castps_si256(scaled));
        }
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    unsafe fn store_fc64<const STREAM: bool>(at: *mut u8, block: Self::Block, scale: f64) {
        let scale = _mm256_set1_pd(scale);
        for (part, integers) in block.into_iter().enumerate() {
            for (half, integers) in halves(integers).into_iter().enumerate() {
                let scaled = _mm256_mul_pd(_mm256_cvtepi32_pd(integers), scale);
                put::<STREAM>(at.add(64 * part + 32 * half), _mm256_castpd_si256(scaled));
            }
        }
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    unsafe fn rescale(block: Self::Block, scale: f32) -> Self::Block {
        let scale = _mm256_set1_ps(scale);
        let [a, b] = block;
        let times = |integers| quantize(_mm256_mul_ps(_mm256_cvtepi32_ps(integers), scale));
        [times(a), times(b)]
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    unsafe fn order_streams() {
        _mm_sfence();
    }
}
