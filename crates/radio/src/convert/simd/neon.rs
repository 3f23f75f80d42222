//! Blocks of 8 samples in 128-bit registers (NEON, which every ARM64 processor has).

#![expect(unsafe_op_in_unsafe_fn, reason = "all is unsafe for the one reason stated at `Engine`")]

use std::arch::aarch64::*;

use super::super::lanes::Engine;
use super::{SC12_GATHER, SC12_SPREAD};

pub(in super::super) struct Neon;

/// In two 128-bit registers with four samples of 24 bits in 32 each: the bytes of six little-endian
/// words. A register's last four bytes are unused in [`SC12_GATHER`].
const SC12_GATHER_BOTH: [u8; 24] = {
    let mut gather = [0; 24];
    let mut place = 0;
    while place < 24 {
        gather[place] = SC12_GATHER[place % 12] as u8 + (place / 12 * 16) as u8;
        place += 1;
    }
    gather
};

/// Extends the sign of sixteen integers.
#[inline]
#[target_feature(enable = "neon")]
fn widen(low: int16x8_t, high: int16x8_t) -> [int32x4_t; 4] {
    [
        vmovl_s16(vget_low_s16(low)),
        vmovl_high_s16(low),
        vmovl_s16(vget_low_s16(high)),
        vmovl_high_s16(high),
    ]
}

/// Saturates to 16-bit integers, in order.
#[inline]
#[target_feature(enable = "neon")]
fn narrow([a, b, c, d]: [int32x4_t; 4]) -> [int16x8_t; 2] {
    [vqmovn_high_s32(vqmovn_s32(a), b), vqmovn_high_s32(vqmovn_s32(c), d)]
}

impl Engine for Neon {
    const SAMPLES: usize = 8;
    const STREAMS: bool = false;
    type Block = [int32x4_t; 4];

    #[inline]
    #[target_feature(enable = "neon")]
    unsafe fn load_sc16(at: *const u8) -> Self::Block {
        widen(vld1q_s16(at.cast()), vld1q_s16(at.add(16).cast()))
    }

    #[inline]
    #[target_feature(enable = "neon")]
    unsafe fn load_sc12(at: *const u8) -> Self::Block {
        let spread = vreinterpretq_u8_s8(vld1q_s8(SC12_SPREAD.as_ptr()));
        // The second group begins four bytes after the start of the second register, so that both
        // registers lie in the block.
        let low = vqtbl1q_u8(vld1q_u8(at), spread);
        let high = vqtbl1q_u8(vld1q_u8(at.add(8)), vaddq_u8(spread, vdupq_n_u8(4)));
        // Odd values move up by 4 bits, and then all down by 4 with their sign.
        let up = vreinterpretq_s16_s32(vdupq_n_s32(4 << 16));
        let [low, high] =
            [low, high].map(|values| vshrq_n_s16::<4>(vshlq_s16(vreinterpretq_s16_u8(values), up)));
        widen(low, high)
    }

    #[inline]
    #[target_feature(enable = "neon")]
    unsafe fn load_sc8(at: *const u8) -> Self::Block {
        let bytes = vld1q_s8(at.cast());
        widen(vmovl_s8(vget_low_s8(bytes)), vmovl_high_s8(bytes))
    }

    // The conversion to an integer saturates, and makes not-a-number 0.
    #[inline]
    #[target_feature(enable = "neon")]
    unsafe fn load_fc32(at: *const u8, scale: f32) -> Self::Block {
        let load = |by| vcvtnq_s32_f32(vmulq_n_f32(vld1q_f32(at.add(by).cast()), scale));
        [load(0), load(16), load(32), load(48)]
    }

    #[inline]
    #[target_feature(enable = "neon")]
    unsafe fn load_fc64(at: *const u8, scale: f64) -> Self::Block {
        let load = |by| vcvtnq_s64_f64(vmulq_n_f64(vld1q_f64(at.add(by).cast()), scale));
        let pair = |by| vqmovn_high_s64(vqmovn_s64(load(by)), load(by + 16));
        [pair(0), pair(32), pair(64), pair(96)]
    }

    #[inline]
    #[target_feature(enable = "neon")]
    unsafe fn store_sc16<const STREAM: bool>(at: *mut u8, block: Self::Block) {
        let [low, high] = narrow(block);
        vst1q_s16(at.cast(), low);
        vst1q_s16(at.add(16).cast(), high);
    }

    #[inline]
    #[target_feature(enable = "neon")]
    unsafe fn store_sc12(at: *mut u8, block: Self::Block) {
        let [low, high] = narrow(block).map(|values| {
            // Saturated to 12 bits at the top of 16. I moves up by 8 bits, and Q below it.
            let pairs = vreinterpretq_u32_s16(vqshlq_n_s16::<4>(values));
            vreinterpretq_u8_u32(vsriq_n_u32::<20>(vshlq_n_u32::<8>(pairs), pairs))
        });
        let gather = SC12_GATHER_BOTH.as_ptr();
        vst1q_u8(at, vqtbl2q_u8(uint8x16x2_t(low, high), vld1q_u8(gather)));
        vst1_u8(at.add(16), vqtbl2_u8(uint8x16x2_t(low, high), vld1_u8(gather.add(16))));
    }

    #[inline]
    #[target_feature(enable = "neon")]
    unsafe fn store_sc8(at: *mut u8, block: Self::Block) {
        let [low, high] = narrow(block);
        vst1q_s8(at.cast(), vqmovn_high_s16(vqmovn_s16(low), high));
    }

    #[inline]
    #[target_feature(enable = "neon")]
    unsafe fn store_fc32<const STREAM: bool>(at: *mut u8, block: Self::Block, scale: f32) {
        for (part, integers) in block.into_iter().enumerate() {
            vst1q_f32(at.add(16 * part).cast(), vmulq_n_f32(vcvtq_f32_s32(integers), scale));
        }
    }

    #[inline]
    #[target_feature(enable = "neon")]
    unsafe fn store_fc64<const STREAM: bool>(at: *mut u8, block: Self::Block, scale: f64) {
        for (part, integers) in block.into_iter().enumerate() {
            let halves = [vmovl_s32(vget_low_s32(integers)), vmovl_high_s32(integers)];
            for (half, integers) in halves.into_iter().enumerate() {
                let scaled = vmulq_n_f64(vcvtq_f64_s64(integers), scale);
                vst1q_f64(at.add(32 * part + 16 * half).cast(), scaled);
            }
        }
    }

    #[inline]
    #[target_feature(enable = "neon")]
    unsafe fn order_streams() {}

    #[inline]
    #[target_feature(enable = "neon")]
    unsafe fn rescale(block: Self::Block, scale: f32) -> Self::Block {
        block.map(|integers| vcvtnq_s32_f32(vmulq_n_f32(vcvtq_f32_s32(integers), scale)))
    }
}
