//! A filter with real taps in 16-bit integers, two taps at a time.
//!
//! Every number of a row is kept with the one behind it, so that one instruction multiplies two
//! numbers by two taps and adds both to a 32-bit sum: half the loads of a filter in floats. Sums
//! are exact, so every copy gives the same bits.

use crate::multiversion;
use crate::rounding::{MOST, whole};
use crate::sampler::Pair;

/// Outputs computed together.
const BLOCK: usize = 64;

/// The sum of taps in magnitude: with it no sum of products leaves 32 bits.
const TAPS_SUM: f32 = 65_000.0;

/// Rounds numbers, of which 1.0 becomes `one`: `out[n]` is `x[n]` and `x[n + 1]`, cut to ±32767.
///
/// # Panics
/// If `x` is not longer than `out`.
pub fn pair_up(x: &[f32], one: f32, out: &mut [Pair]) {
    assert!(x.len() > out.len(), "one number more than pairs");
    round(&x[..=out.len()], one, bytemuck::cast_slice_mut(out));
}

multiversion! {
    fn round(x: &[f32], one: f32, out: &mut [u32]) = round_body, avx512;
}

#[inline(always)]
fn round_body<const FMA: bool>(x: &[f32], one: f32, out: &mut [u32]) {
    // Never fused: the copies are to give the same bits.
    for ((x, behind), out) in x.iter().zip(&x[1..]).zip(out) {
        *out = (whole(x * one) & 0xFFFF | whole(behind * one) << 16).to_le();
    }
}

/// `N` pairs of taps, rounded to 15 bits below the largest or what the sums have room for.
#[derive(Clone, Copy, Debug)]
pub struct Taps<const N: usize> {
    pairs: [Pair; N],
    /// What a tap of one is.
    scale: f32,
}

impl<const N: usize> Taps<N> {
    /// Rounds taps: `taps[j]` is for the number `j` places behind.
    #[must_use]
    pub fn new(taps: &[[f32; 2]; N]) -> Self {
        let taps = taps.as_flattened();
        let peak = taps.iter().fold(f32::MIN_POSITIVE, |most, tap| tap.abs().max(most));
        let sum = taps.iter().map(|tap| tap.abs()).sum::<f32>();
        // Rounding may add half to every tap.
        let scale = ((TAPS_SUM - N as f32) / sum.max(peak)).min(MOST / peak);
        let pairs = std::array::from_fn(|j| {
            [taps[2 * j], taps[2 * j + 1]].map(|tap| (tap * scale).round() as i16)
        });
        Self { pairs, scale }
    }

    /// `out[n]` is the sum over `j` of `taps[j] * x[n + j]`, of numbers that [`pair_up`] rounded
    /// with this `one`.
    ///
    /// # Panics
    /// If the outputs are no multiple of 64, or there are fewer than `out.len() + 2 N - 2` pairs.
    pub fn correlate(&self, x: &[Pair], one: f32, out: &mut [f32]) {
        let (blocks, rest) = out.as_chunks_mut::<BLOCK>();
        assert!(rest.is_empty(), "whole blocks");
        assert!(x.len() + 2 >= blocks.len() * BLOCK + 2 * N, "a filter needs its history");
        let scale = 1.0 / (self.scale * one);
        #[cfg(target_arch = "x86_64")]
        {
            if crate::simd::has_vnni() {
                // SAFETY: the processor has the features, and the pairs are there.
                return unsafe { x86::correlate_512(&self.pairs, x, scale, blocks) };
            }
            if crate::simd::has_avx2_fma() {
                // SAFETY: the processor has the features, and the pairs are there.
                return unsafe { x86::correlate_256(&self.pairs, x, scale, blocks) };
            }
        }
        correlate_plain(&self.pairs, x, scale, blocks);
    }
}

/// The reference.
fn correlate_plain(taps: &[Pair], x: &[Pair], scale: f32, out: &mut [[f32; BLOCK]]) {
    for (n, out) in out.as_flattened_mut().iter_mut().enumerate() {
        let products = taps.iter().zip(x[n..].iter().step_by(2)).map(|(tap, x)| {
            i32::from(tap[0]) * i32::from(x[0]) + i32::from(tap[1]) * i32::from(x[1])
        });
        *out = products.sum::<i32>() as f32 * scale;
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::{BLOCK, Pair};
    use std::arch::x86_64::*;

    /// As [`super::correlate_plain`], bit for bit.
    ///
    /// # Safety
    /// There are pairs for all outputs and taps.
    #[target_feature(enable = "avx512f,avx512vnni")]
    pub(super) unsafe fn correlate_512(
        taps: &[Pair],
        x: &[Pair],
        scale: f32,
        out: &mut [[f32; BLOCK]],
    ) {
        const WIDE: usize = 16;
        let scale = _mm512_set1_ps(scale);
        for (b, out) in out.iter_mut().enumerate() {
            let mut sums = [_mm512_setzero_si512(); BLOCK / WIDE];
            for (j, tap) in taps.iter().enumerate() {
                let tap = _mm512_set1_epi32(bytemuck::cast(*tap));
                for (v, sum) in sums.iter_mut().enumerate() {
                    // SAFETY: as the caller says.
                    let x = unsafe {
                        _mm512_loadu_si512(x.as_ptr().add(b * BLOCK + v * WIDE + 2 * j).cast())
                    };
                    *sum = _mm512_dpwssd_epi32(*sum, x, tap);
                }
            }
            for (out, sum) in out.as_chunks_mut::<WIDE>().0.iter_mut().zip(sums) {
                // SAFETY: sixteen values have room.
                unsafe {
                    _mm512_storeu_ps(
                        out.as_mut_ptr(),
                        _mm512_mul_ps(_mm512_cvtepi32_ps(sum), scale),
                    )
                };
            }
        }
    }

    /// As [`super::correlate_plain`], bit for bit.
    ///
    /// # Safety
    /// There are pairs for all outputs and taps.
    #[target_feature(enable = "avx2")]
    pub(super) unsafe fn correlate_256(
        taps: &[Pair],
        x: &[Pair],
        scale: f32,
        out: &mut [[f32; BLOCK]],
    ) {
        const WIDE: usize = 8;
        let scale = _mm256_set1_ps(scale);
        for (b, out) in out.iter_mut().enumerate() {
            let mut sums = [_mm256_setzero_si256(); BLOCK / WIDE];
            for (j, tap) in taps.iter().enumerate() {
                let tap = _mm256_set1_epi32(bytemuck::cast(*tap));
                for (v, sum) in sums.iter_mut().enumerate() {
                    // SAFETY: as the caller says.
                    let x = unsafe {
                        _mm256_loadu_si256(x.as_ptr().add(b * BLOCK + v * WIDE + 2 * j).cast())
                    };
                    *sum = _mm256_add_epi32(*sum, _mm256_madd_epi16(x, tap));
                }
            }
            for (out, sum) in out.as_chunks_mut::<WIDE>().0.iter_mut().zip(sums) {
                // SAFETY: eight values have room.
                unsafe {
                    _mm256_storeu_ps(
                        out.as_mut_ptr(),
                        _mm256_mul_ps(_mm256_cvtepi32_ps(sum), scale),
                    )
                };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: f32 = 1024.0;

    fn noise(n: usize, seed: u32) -> Vec<f32> {
        let hash = |i: u32| (i + 977 * seed).wrapping_mul(2_654_435_761) >> 8;
        (0..n as u32).map(|i| hash(i) as f32 / 1e6 - 8.4).collect()
    }

    fn paired(x: &[f32]) -> Vec<Pair> {
        let mut pairs = vec![[0; 2]; x.len() - 1];
        pair_up(x, ONE, &mut pairs);
        pairs
    }

    #[test]
    fn numbers_are_rounded_cut_and_paired() {
        let pairs = paired(&[0.5, -0.25, 1e9, -1e9, 0.000_6, -7.0]);
        let exact = [[512, -256], [-256, 32767], [32767, -32767], [-32767, 1], [1, -7168]];
        assert_eq!(pairs, exact);
        let x = noise(100, 3);
        let mut plain = vec![0u32; 99];
        round_body::<false>(&x, ONE, &mut plain);
        assert_eq!(bytemuck::cast_slice::<_, Pair>(&plain), paired(&x));
    }

    #[test]
    fn it_is_the_filter_in_floats_but_for_rounding() {
        let (taps, x) = (noise(32, 1), noise(192 + 32, 2));
        let taps: Vec<f32> = taps.iter().map(|tap| tap / 40.0).collect();
        let [mut out, mut exact] = [[0.0; 192]; 2];
        let pairs: [[f32; 2]; 16] = std::array::from_fn(|j| [taps[2 * j], taps[2 * j + 1]]);
        Taps::new(&pairs).correlate(&paired(&x), ONE, &mut out);
        crate::fir::correlate(&taps, &x, &mut exact);
        // Sixteen bits on either side.
        let worst = out.iter().zip(exact).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        assert!(worst < 0.01, "{worst}");
    }

    #[test]
    fn the_fast_copies_give_the_same_bits_at_the_loudest() {
        let loud = |i: usize| [i16::MAX, -i16::MAX, 12_345][i % 3];
        let x: Vec<Pair> = (0..200).map(|i| [loud(i), loud(i * i + 1)]).collect();
        for taps in [[[1.0, 1.0]; 16], std::array::from_fn(|j| [j as f32 - 7.3, -0.2])] {
            let taps = Taps::new(&taps).pairs;
            let mut plain = [[0.0; BLOCK]; 2];
            correlate_plain(&taps, &x, 1e-3, &mut plain);
            assert!(plain[1][5] != 0.0);
            #[cfg(target_arch = "x86_64")]
            {
                let mut fast = [[0.0; BLOCK]; 2];
                if crate::simd::has_avx2_fma() {
                    // SAFETY: the processor has the features, and the pairs are there.
                    unsafe { x86::correlate_256(&taps, &x, 1e-3, &mut fast) };
                    assert_eq!(fast, plain);
                }
                fast = [[0.0; BLOCK]; 2];
                if crate::simd::has_vnni() {
                    // SAFETY: the processor has the features, and the pairs are there.
                    unsafe { x86::correlate_512(&taps, &x, 1e-3, &mut fast) };
                    assert_eq!(fast, plain);
                }
            }
        }
    }
}
