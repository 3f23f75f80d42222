//! The decoders' recursion and traceback for ARM64: two vectors hold one state of all lanes during
//! the recursion, and one during the traceback.

use super::{LANES, RENORMAL_TURNS, Row, SCALE, SHIFT, STATES};
use std::arch::aarch64::{
    int16x8_t, uint8x16_t, uint16x8_t, vabdq_s16, vaddq_s16, vandq_u8, vcgtq_s16, vdupq_n_s16,
    vdupq_n_u8, veorq_u8, vld1q_s16, vld1q_u8, vminq_s16, vmovn_high_u16, vmovn_u16, vmulq_s16,
    vnegq_s8, vreinterpretq_s8_u8, vshlq_n_u8, vshlq_u8, vshrq_n_s16, vshrq_n_u8, vsliq_n_u8,
    vsliq_n_u16, vst1q_s16, vst1q_u8, vsubq_s16, vsubq_u8,
};

/// Lanes of a vector of 16-bit integers.
const WIDE: usize = LANES / 2;

/// The metrics of eight decoders.
type Metrics = [int16x8_t; STATES];

/// Computes [`run_plain`](super::run_plain), bit for bit.
#[target_feature(enable = "neon")]
pub(super) fn run(metrics: &mut [Row; STATES], rows: &[Row], memory: &mut [[u8; LANES]]) {
    let mut low = metrics.map(|row| halves(&row)[0]);
    let mut high = metrics.map(|row| halves(&row)[1]);
    for (rows, memory) in rows.chunks(RENORMAL_TURNS).zip(memory.chunks_mut(RENORMAL_TURNS)) {
        for (y, memory) in rows.iter().zip(memory) {
            let [y_low, y_high] = halves(y);
            let turn = vmovn_u16(step(y_low, &mut low));
            store(memory, vmovn_high_u16(turn, step(y_high, &mut high)));
        }
        for m in [&mut low, &mut high] {
            let least = vminq_s16(vminq_s16(m[0], m[1]), vminq_s16(m[2], m[3]));
            *m = m.map(|m| vsubq_s16(m, least));
        }
    }
    for (metrics, (low, high)) in metrics.iter_mut().zip(low.into_iter().zip(high)) {
        // SAFETY: a row has room for both vectors.
        unsafe {
            vst1q_s16(metrics.as_mut_ptr(), low);
            vst1q_s16(metrics.as_mut_ptr().add(WIDE), high);
        }
    }
}

/// Computes [`step`](super::step) for eight decoders. Only the low bytes of the result count.
#[inline]
#[target_feature(enable = "neon")]
fn step(y: int16x8_t, m: &mut Metrics) -> uint16x8_t {
    let four = vdupq_n_s16(4 * SCALE as i16);
    let (mut distance, mut upper) = ([y; STATES], [vcgtq_s16(y, y); STATES]);
    for pair in 0..STATES {
        let middle = vdupq_n_s16((2 * pair as i16 - 3) * SCALE as i16);
        let off = vsubq_s16(vabdq_s16(y, middle), four);
        distance[pair] = vshrq_n_s16::<{ SHIFT as i32 }>(vmulq_s16(off, off));
        upper[pair] = vcgtq_s16(y, middle);
    }
    let (old, mut take_1) = (*m, upper);
    for next in 0..STATES {
        let (from_0, from_1) = ((next & 1) << 1, (next & 1) << 1 | 1);
        let metric_0 = vaddq_s16(old[from_0], distance[next]);
        let metric_1 = vaddq_s16(old[from_1], distance[next ^ 2]);
        m[next] = vminq_s16(metric_0, metric_1);
        take_1[next] = vcgtq_s16(metric_0, metric_1);
    }
    // Every mask replaces all bits from its own on.
    let turn = vsliq_n_u16::<1>(take_1[0], take_1[1]);
    let turn = vsliq_n_u16::<3>(vsliq_n_u16::<2>(turn, take_1[2]), take_1[3]);
    let turn = vsliq_n_u16::<5>(vsliq_n_u16::<4>(turn, upper[0]), upper[1]);
    vsliq_n_u16::<7>(vsliq_n_u16::<6>(turn, upper[2]), upper[3])
}

/// Computes [`trace_body`](super::trace_body), bit for bit.
#[target_feature(enable = "neon")]
pub(super) fn trace(memory: &[[u8; LANES]], state: [u32; LANES], decisions: &mut [[u8; LANES]]) {
    let mut state = load(&state.map(|state| state as u8));
    let (early, late) = memory.split_at(decisions.len());
    for turn in late.iter().rev() {
        back(load(turn), &mut state);
    }
    for (turn, decision) in early.iter().zip(decisions).rev() {
        store(decision, back(load(turn), &mut state));
    }
}

/// Computes [`back`](super::back).
#[inline]
#[target_feature(enable = "neon")]
fn back(bits: uint8x16_t, state: &mut uint8x16_t) -> uint8x16_t {
    let (one, s) = (vdupq_n_u8(1), *state);
    // Shifts to the right are those to the left by a negative number.
    let take_1 = vandq_u8(vshlq_u8(bits, vnegq_s8(vreinterpretq_s8_u8(s))), one);
    let pair = veorq_u8(s, vshlq_n_u8::<1>(take_1));
    let right = vreinterpretq_s8_u8(vsubq_u8(vdupq_n_u8(4_u8.wrapping_neg()), pair));
    let z2 = vandq_u8(vshlq_u8(bits, right), one);
    *state = vandq_u8(vsliq_n_u8::<1>(take_1, s), vdupq_n_u8(3));
    vsliq_n_u8::<1>(vshrq_n_u8::<1>(pair), z2)
}

#[inline]
#[target_feature(enable = "neon")]
fn halves(row: &Row) -> [int16x8_t; 2] {
    // SAFETY: a row has two vectors.
    unsafe { [vld1q_s16(row.as_ptr()), vld1q_s16(row.as_ptr().add(WIDE))] }
}

#[inline]
#[target_feature(enable = "neon")]
fn load(from: &[u8; LANES]) -> uint8x16_t {
    // SAFETY: the array has sixteen bytes.
    unsafe { vld1q_u8(from.as_ptr()) }
}

#[inline]
#[target_feature(enable = "neon")]
fn store(to: &mut [u8; LANES], bytes: uint8x16_t) {
    // SAFETY: the array has sixteen bytes.
    unsafe { vst1q_u8(to.as_mut_ptr(), bytes) };
}
