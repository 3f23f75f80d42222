//! The sampler for ARM64.

use super::{GROUP, IntSample, Levelling, Run, SHARE, Sums};
use std::arch::aarch64::*;
use std::arch::asm;

/// Pairs of a vector.
const WIDE: usize = 4;

/// Computes [`super::sample_plain`], bit for bit.
///
/// # Safety
/// The run must [fit](Run::fits).
#[target_feature(enable = "neon")]
pub(super) unsafe fn sample(run: &Run<'_>, out: &mut [[f32; GROUP]]) -> Sums {
    let mut leveller = Leveller::new(run);
    let mut at = run.at;
    for out in out {
        // SAFETY: by the caller's contract.
        let sums = unsafe { [four(run, at), four(run, at + SHARE as u64 * run.step)] };
        at += GROUP as u64 * run.step;
        leveller.write(sums, out);
    }
    leveller.sums()
}

/// Returns the sums of four outputs that share a window, the first taken at `first`.
///
/// # Safety
/// The run must [fit](Run::fits), and this must be one of its times.
#[inline]
#[target_feature(enable = "neon")]
unsafe fn four(run: &Run<'_>, first: u64) -> int32x4_t {
    // SAFETY: the run fits, so the window lies in the row.
    let samples = unsafe { run.row.as_ptr().add(run.window(first)) };
    let mut taps = [run.rows.as_ptr(); SHARE];
    for (taps, i) in taps.iter_mut().zip(0..) {
        // SAFETY: a phase is less than `phases` and a time at most `lead` late, so that a whole
        // window follows in the rows.
        *taps = unsafe { taps.add(run.taps(first + i * run.step, first)) };
    }
    let mut sums = [[vdupq_n_s32(0); 2]; SHARE];
    // A window is a multiple of two vectors: reading two at a time takes one instruction.
    for at in (0..run.sampler.window).step_by(2 * WIDE) {
        // SAFETY: within the window.
        let x = unsafe { load_two(samples.add(at)) };
        for i in 0..SHARE {
            // SAFETY: within the window.
            let taps = unsafe { load_two(taps[i].add(at)) };
            multiply_add(&mut sums[i], x[0], taps[0]);
            multiply_add(&mut sums[i], x[1], taps[1]);
        }
    }
    let [[a, b], [c, d], [e, f], [g, h]] = sums;
    let [low, high] = [vpaddq_s32(a, c), vpaddq_s32(b, d)];
    let [low_2, high_2] = [vpaddq_s32(e, g), vpaddq_s32(f, h)];
    vaddq_s32(vpaddq_s32(low, low_2), vpaddq_s32(high, high_2))
}

/// Adds the products of eight numbers. Inline assembly, because the compiler widens the numbers of
/// the intrinsics first.
#[inline]
#[target_feature(enable = "neon")]
fn multiply_add([low, high]: &mut [int32x4_t; 2], x: int16x8_t, taps: int16x8_t) {
    // SAFETY: every processor of this kind has the instructions.
    unsafe {
        asm!(
            "smlal {low:v}.4s, {x:v}.4h, {taps:v}.4h",
            "smlal2 {high:v}.4s, {x:v}.8h, {taps:v}.8h",
            low = inout(vreg) *low,
            high = inout(vreg) *high,
            x = in(vreg) x,
            taps = in(vreg) taps,
            options(pure, nomem, nostack, preserves_flags),
        );
    }
}

/// # Safety
/// `from` must point to eight pairs.
#[inline]
#[target_feature(enable = "neon")]
unsafe fn load_two(from: *const IntSample) -> [int16x8_t; 2] {
    // SAFETY: by the caller's contract.
    unsafe { [vld1q_s16(from.cast()), vld1q_s16(from.add(WIDE).cast())] }
}

/// The step from sums to outputs, eight at a time, with their measurement.
struct Leveller {
    scale: float32x4_t,
    offset: float32x4_t,
    most: float32x4_t,
    least: float32x4_t,
    gain: float32x4_t,
    plain: [float32x4_t; 2],
    square: [float32x4_t; 2],
}

impl Leveller {
    #[inline]
    #[target_feature(enable = "neon")]
    fn new(run: &Run<'_>) -> Self {
        let Levelling { offset, limit, gain } = run.levelling;
        Self {
            scale: vdupq_n_f32(run.scale),
            offset: vdupq_n_f32(offset),
            most: vdupq_n_f32(limit),
            least: vdupq_n_f32(-limit),
            gain: vdupq_n_f32(gain),
            plain: [vdupq_n_f32(0.0); 2],
            square: [vdupq_n_f32(0.0); 2],
        }
    }

    #[inline]
    #[target_feature(enable = "neon")]
    fn write(&mut self, sums: [int32x4_t; 2], out: &mut [f32; GROUP]) {
        for half in 0..2 {
            let x = vsubq_f32(vmulq_f32(vcvtq_f32_s32(sums[half]), self.scale), self.offset);
            let x = vbslq_f32(vcgtq_f32(x, self.least), x, self.least);
            let y = vbslq_f32(vcltq_f32(x, self.most), x, self.most);
            self.plain[half] = vaddq_f32(self.plain[half], y);
            self.square[half] = vaddq_f32(self.square[half], vmulq_f32(y, y));
            let to = out[half * GROUP / 2..].as_mut_ptr();
            // SAFETY: four values have room.
            unsafe { vst1q_f32(to, vmulq_f32(y, self.gain)) };
        }
    }

    #[inline]
    #[target_feature(enable = "neon")]
    fn sums(&self) -> Sums {
        let mut sums = Sums::default();
        for half in 0..2 {
            // SAFETY: each row has room for eight values.
            unsafe {
                vst1q_f32(sums[0].as_mut_ptr().add(half * GROUP / 2), self.plain[half]);
                vst1q_f32(sums[1].as_mut_ptr().add(half * GROUP / 2), self.square[half]);
            }
        }
        sums
    }
}
