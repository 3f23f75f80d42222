//! The decoders' recursion with AVX2, and the traceback with AVX-512: a vector holds one state of
//! all lanes.

#![expect(unsafe_op_in_unsafe_fn, reason = "all is unsafe as it needs a processor with AVX2")]

use super::{LANES, RENORMAL_TURNS, Row, SCALE, SHIFT, STATES};
use std::arch::x86_64::{
    __m256i, _mm256_abs_epi16, _mm256_add_epi16, _mm256_and_si256, _mm256_castsi256_si128,
    _mm256_cmpgt_epi16, _mm256_min_epi16, _mm256_mullo_epi16, _mm256_or_si256, _mm256_packus_epi16,
    _mm256_permute4x64_epi64, _mm256_set1_epi16, _mm256_setzero_si256, _mm256_srli_epi16,
    _mm256_sub_epi16,
};

/// Computes [`run_plain`](super::run_plain), bit for bit.
#[target_feature(enable = "avx2")]
pub(super) unsafe fn run(metrics: &mut [Row; STATES], rows: &[Row], memory: &mut [[u8; LANES]]) {
    let mut m: [__m256i; STATES] = bytemuck::cast(*metrics);
    for (rows, memory) in rows.chunks(RENORMAL_TURNS).zip(memory.chunks_mut(RENORMAL_TURNS)) {
        for (y, memory) in rows.iter().zip(memory) {
            *memory = step(bytemuck::cast(*y), &mut m);
        }
        let least = _mm256_min_epi16(_mm256_min_epi16(m[0], m[1]), _mm256_min_epi16(m[2], m[3]));
        m = [0, 1, 2, 3].map(|state| _mm256_sub_epi16(m[state], least));
    }
    *metrics = bytemuck::cast(m);
}

/// Computes [`trace_body`](super::trace_body), bit for bit, compiled for wider vectors.
#[cfg(avx512)]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx2,fma")]
pub(super) unsafe fn trace(
    memory: &[[u8; LANES]],
    state: [u32; LANES],
    decisions: &mut [[u8; LANES]],
) {
    super::trace_body::<true>(memory, state, decisions);
}

/// Computes [`step`](super::step).
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn step(y: __m256i, m: &mut [__m256i; STATES]) -> [u8; LANES] {
    let zero = _mm256_setzero_si256();
    let four = _mm256_set1_epi16(4 * SCALE as i16);
    let (mut distance, mut turn) = ([zero; STATES], zero);
    for (pair, distance) in distance.iter_mut().enumerate() {
        let middle = _mm256_set1_epi16((2 * pair as i16 - 3) * SCALE as i16);
        let from_middle = _mm256_sub_epi16(y, middle);
        let off = _mm256_sub_epi16(_mm256_abs_epi16(from_middle), four);
        *distance = _mm256_srli_epi16::<{ SHIFT as i32 }>(_mm256_mullo_epi16(off, off));
        let upper = _mm256_cmpgt_epi16(from_middle, zero);
        turn = _mm256_or_si256(turn, _mm256_and_si256(upper, _mm256_set1_epi16(16 << pair)));
    }
    let old = *m;
    for next in 0..STATES {
        let (from_0, from_1) = ((next & 1) << 1, (next & 1) << 1 | 1);
        let metric_0 = _mm256_add_epi16(old[from_0], distance[next]);
        let metric_1 = _mm256_add_epi16(old[from_1], distance[next ^ 2]);
        m[next] = _mm256_min_epi16(metric_0, metric_1);
        let take_1 = _mm256_cmpgt_epi16(metric_0, metric_1);
        turn = _mm256_or_si256(turn, _mm256_and_si256(take_1, _mm256_set1_epi16(1 << next)));
    }
    // Words to bytes within each half, then the halves together.
    let bytes = _mm256_permute4x64_epi64::<0b00_00_10_00>(_mm256_packus_epi16(turn, turn));
    bytemuck::cast(_mm256_castsi256_si128(bytes))
}
