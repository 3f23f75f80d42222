//! Rows in four 16-byte registers.

use super::{LANES, Rows};
use crate::chunks::Chunks;
use crate::pairs::{self, Group};
use std::arch::aarch64::*;

/// Rows in the registers of ARM64, which every such processor has.
#[derive(Clone, Copy, Debug)]
pub struct Neon;

/// A part of a row.
const FOUR: usize = 4;

/// Defines operations of one expression each, on every four lanes.
macro_rules! operations {
    ($($name:ident($($x:ident: $X:ident),*) -> $Y:ident = $result:expr;)*) => {$(
        #[inline(always)]
        fn $name(self, $($x: Self::$X),*) -> Self::$Y {
            [0, 1, 2, 3].map(|four| {
                $(let $x = $x[four];)*
                // SAFETY: every processor of this kind has the instructions.
                unsafe { $result }
            })
        }
    )*};
}

/// Defines loads and stores.
macro_rules! memory {
    ($load:ident, $load_four:ident, $store:ident, $store_four:ident, $number:ty, $X:ident) => {
        #[inline(always)]
        fn $load(self, x: &[$number; LANES]) -> Self::$X {
            // SAFETY: every processor of this kind has the instructions, and a row has room.
            [0, 1, 2, 3].map(|four| unsafe { $load_four(x.as_ptr().add(FOUR * four)) })
        }
        #[inline(always)]
        fn $store(self, x: Self::$X) -> [$number; LANES] {
            let mut to = [<$number>::default(); LANES];
            for (to, x) in to.in_chunks_mut::<FOUR>().0.iter_mut().zip(x) {
                // SAFETY: every processor of this kind has the instructions, and four have room.
                unsafe { $store_four(to.as_mut_ptr(), x) };
            }
            to
        }
    };
}

impl Rows for Neon {
    type Float = [float32x4_t; LANES / FOUR];
    type Whole = [int32x4_t; LANES / FOUR];
    type Mask = [uint32x4_t; LANES / FOUR];

    operations! {
        add(a: Float, b: Float) -> Float = vaddq_f32(a, b);
        sub(a: Float, b: Float) -> Float = vsubq_f32(a, b);
        mul(a: Float, b: Float) -> Float = vmulq_f32(a, b);
        madd(a: Float, b: Float, c: Float) -> Float = vfmaq_f32(c, a, b);
        // The instructions for the lesser and the greater decide otherwise for not-a-number.
        min(a: Float, b: Float) -> Float = vbslq_f32(vcltq_f32(a, b), a, b);
        max(a: Float, b: Float) -> Float = vbslq_f32(vcgtq_f32(a, b), a, b);
        abs(x: Float) -> Float = vabsq_f32(x);
        less(a: Float, b: Float) -> Mask = vcltq_f32(a, b);
        differ(a: Float, b: Float) -> Mask = vmvnq_u32(vceqq_f32(a, b));
        choose(mask: Mask, a: Float, b: Float) -> Float = vbslq_f32(mask, a, b);
        choose_whole(mask: Mask, a: Whole, b: Whole) -> Whole = vbslq_s32(mask, a, b);
        floats_of(x: Whole) -> Float = vcvtq_f32_s32(x);
        whole_add(a: Whole, b: Whole) -> Whole = vaddq_s32(a, b);
        or(a: Whole, b: Whole) -> Whole = vorrq_s32(a, b);
        and(a: Whole, b: Whole) -> Whole = vandq_s32(a, b);
    }

    memory!(load, vld1q_f32, store, vst1q_f32, f32, Float);
    memory!(load_wholes, vld1q_s32, store_wholes, vst1q_s32, i32, Whole);

    #[inline(always)]
    fn store_16(self, x: Self::Whole, lanes: u16, to: &mut [i16; LANES]) {
        // SAFETY: every processor of this kind has the instructions, and a row has room.
        unsafe {
            let lane = vld1q_u16([1, 2, 4, 8, 16, 32, 64, 128].as_ptr());
            let of = |x, lanes| {
                let kept = vtstq_u16(vdupq_n_u16(lanes), lane);
                vandq_s16(x, vreinterpretq_s16_u16(kept))
            };
            let low = vmovn_high_s32(vmovn_s32(x[0]), x[1]);
            let high = vmovn_high_s32(vmovn_s32(x[2]), x[3]);
            vst1q_s16(to.as_mut_ptr(), of(low, lanes));
            vst1q_s16(to.as_mut_ptr().add(8), of(high, lanes >> 8));
        }
    }
    #[inline(always)]
    fn floats(self, x: f32) -> Self::Float {
        // SAFETY: every processor of this kind has the instruction.
        [unsafe { vdupq_n_f32(x) }; 4]
    }
    #[inline(always)]
    fn wholes(self, x: i32) -> Self::Whole {
        // SAFETY: every processor of this kind has the instruction.
        [unsafe { vdupq_n_s32(x) }; 4]
    }
    #[inline(always)]
    fn bits(self, mask: Self::Mask) -> u16 {
        // SAFETY: every processor of this kind has the instructions.
        unsafe {
            let lane = vld1q_u16([1, 2, 4, 8, 16, 32, 64, 128].as_ptr());
            let low = vmovn_high_u32(vmovn_u32(mask[0]), mask[1]);
            let high = vmovn_high_u32(vmovn_u32(mask[2]), mask[3]);
            vaddvq_u16(vandq_u16(low, lane)) | vaddvq_u16(vandq_u16(high, lane)) << 8
        }
    }
    #[inline(always)]
    fn shift_left<const N: u32>(self, x: Self::Whole) -> Self::Whole {
        // SAFETY: every processor of this kind has the instruction.
        x.map(|x| unsafe { vshlq_s32(x, vdupq_n_s32(N as i32)) })
    }
    #[inline(always)]
    fn shift_right<const N: u32>(self, x: Self::Whole) -> Self::Whole {
        // SAFETY: every processor of this kind has the instruction.
        x.map(|x| unsafe {
            let shifted = vshlq_u32(vreinterpretq_u32_s32(x), vdupq_n_s32(-(N as i32)));
            vreinterpretq_s32_u32(shifted)
        })
    }
    #[inline(always)]
    fn add_products<const N: usize>(
        self,
        groups: &[Group<N>],
        x: &[i16],
        mut sums: Self::Whole,
    ) -> Self::Whole {
        pairs::check(groups, x);
        // SAFETY: every processor of this kind has the instructions, and the slices hold all the
        // numbers read.
        unsafe { pairs::neon::add_products_to(groups, x, &mut sums) };
        sums
    }
}
