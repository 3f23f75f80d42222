//! A filter with real taps in 16-bit integers, two taps at a time.
//!
//! One instruction multiplies two neighbouring numbers by two taps and adds both to a 32-bit sum:
//! half the loads of a filter in floats. It computes every other output; those between come from
//! the same numbers, read one position later. Sums are exact, so every copy gives the same bits.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(avx512)]
pub(crate) mod avx512;
#[cfg(all(target_arch = "aarch64", target_endian = "little"))]
pub(crate) mod neon;

use crate::chunks::Chunks;
use crate::multiversion;
use crate::rounding::{MOST, whole};
use crate::sampler::IntSample;

/// Granularity of a filter's outputs.
pub const BLOCK: usize = 32;

/// Outputs of [`add_products`].
pub const LANES: usize = 16;

/// The largest sum of the taps' magnitudes with which no sum of products exceeds 32 bits.
const TAPS_SUM: f32 = 65_000.0;

multiversion! {
    /// Rounds numbers, scaled by `one`, and clips them to ±32767.
    ///
    /// # Panics
    /// If `out` is shorter than `x`.
    pub fn round(x: &[f32], one: f32, out: &mut [i16]) = round_body, avx512;
}

#[inline(always)]
fn round_body<const FMA: bool>(x: &[f32], one: f32, out: &mut [i16]) {
    // Never fused, because all copies must give the same bits.
    let out = &mut out[..x.len()];
    for (x, out) in x.iter().zip(out) {
        *out = whole(x * one) as i16;
    }
}

/// Returns the largest magnitude, and the sum of the magnitudes.
fn magnitudes(taps: &[f32]) -> [f32; 2] {
    let (sixteens, rest) = taps.in_chunks::<16>();
    let (mut peaks, mut sums) = ([f32::MIN_POSITIVE; 16], [0.0; 16]);
    let mut add = |lane: usize, tap: f32| {
        let tap = tap.abs();
        peaks[lane] = if tap > peaks[lane] { tap } else { peaks[lane] };
        sums[lane] += tap;
    };
    for taps in sixteens {
        (0..16).for_each(|lane| add(lane, taps[lane]));
    }
    rest.iter().for_each(|tap| add(0, *tap));
    [peaks.into_iter().fold(0.0, f32::max), sums.iter().sum()]
}

/// `N` pairs of taps, a multiple of sixteen, rounded to 15 bits below the largest, or to fewer bits
/// if the sums would overflow.
#[derive(Clone, Copy, Debug)]
pub struct PairTaps<const N: usize> {
    pairs: [IntSample; N],
    /// The integer value of a tap of one.
    scale: f32,
}

impl<const N: usize> PairTaps<N> {
    /// Rounds taps: `taps[j]` is for the number `j` positions later.
    #[must_use]
    pub fn new(taps: &[[f32; 2]; N]) -> Self {
        const { assert!(N % 16 == 0, "taps in whole rows") };
        let taps = taps.as_flattened();
        let [peak, sum] = magnitudes(taps);
        // Rounding may add half to every tap.
        let scale = ((TAPS_SUM - N as f32) / sum.max(peak)).min(MOST / peak);
        let mut pairs = [[0; 2]; N];
        round(taps, scale, pairs.as_flattened_mut());
        Self { pairs, scale }
    }

    /// Computes `out[n]`, the sum over `j` of `taps[j] * x[n + j]`, for numbers that [`round()`]
    /// rounded with this `one`.
    ///
    /// # Panics
    /// If the outputs are not a multiple of [`BLOCK`], or there are fewer than `out.len() + 2 N -
    /// 1` numbers.
    pub fn correlate(&self, x: &[i16], one: f32, out: &mut [f32]) {
        let (blocks, rest) = out.in_chunks_mut::<BLOCK>();
        assert!(rest.is_empty(), "whole blocks");
        assert!(x.len() + 1 >= blocks.len() * BLOCK + 2 * N, "a filter needs its history");
        let scale = 1.0 / (self.scale * one);
        #[cfg(target_arch = "x86_64")]
        {
            #[cfg(avx512)]
            if crate::simd::has_vnni() {
                // SAFETY: `simd` has found the features; the assertions above: the slices hold all
                // the numbers read.
                return unsafe { avx512::correlate_512(&self.pairs, x, scale, blocks) };
            }
            if crate::simd::has_avx2_fma() {
                // SAFETY: `simd` has found the features; the assertions above: the slices hold all
                // the numbers read.
                return unsafe { avx2::correlate_256(&self.pairs, x, scale, blocks) };
            }
        }
        #[cfg(all(target_arch = "aarch64", target_endian = "little"))]
        // SAFETY: the assertions above: the slices hold all the numbers read.
        return unsafe { neon::correlate(&self.pairs, x, scale, blocks) };
        #[cfg_attr(target_arch = "aarch64", allow(unreachable_code))]
        correlate_plain(&self.pairs, x, scale, blocks);
    }
}

/// Runs the reference implementation.
fn correlate_plain(taps: &[IntSample], x: &[i16], scale: f32, out: &mut [[f32; BLOCK]]) {
    for (n, out) in out.as_flattened_mut().iter_mut().enumerate() {
        *out = product(taps, &x[n..]) as f32 * scale;
    }
}

fn product(taps: &[IntSample], x: &[i16]) -> i32 {
    let products = taps
        .iter()
        .zip(x.in_chunks::<2>().0)
        .map(|(tap, x)| i32::from(tap[0]) * i32::from(x[0]) + i32::from(tap[1]) * i32::from(x[1]));
    products.fold(0, i32::wrapping_add)
}

/// Taps on `2 N` consecutive numbers; `N` is a multiple of sixteen.
#[derive(Clone, Copy, Debug)]
pub struct Group<const N: usize> {
    /// The index of the first number.
    pub start: usize,
    /// The taps in pairs.
    pub taps: [IntSample; N],
}

/// Adds `taps[j] * x[start + n + j]` of all groups and their taps to `sums[n]`: a filter for few
/// outputs with scattered taps.
///
/// # Panics
/// If a group reaches beyond the numbers: at least `start + 2 N + LANES - 1` are necessary.
pub fn add_products<const N: usize>(groups: &[Group<N>], x: &[i16], sums: &mut [i32; LANES]) {
    check(groups, x);
    #[cfg(target_arch = "x86_64")]
    {
        #[cfg(avx512)]
        if crate::simd::has_vnni() {
            // SAFETY: `simd` has found the features, and `check` that the slices hold all the
            // numbers read.
            return unsafe { avx512::add_products_512(groups, x, sums) };
        }
        if crate::simd::has_avx2_fma() {
            // SAFETY: `simd` has found the features, and `check` that the slices hold all the
            // numbers read.
            return unsafe { avx2::add_products_256(groups, x, sums) };
        }
    }
    #[cfg(all(target_arch = "aarch64", target_endian = "little"))]
    // SAFETY: `check` has found that the slices hold all the numbers read.
    return unsafe { neon::add_products(groups, x, sums) };
    #[cfg_attr(target_arch = "aarch64", allow(unreachable_code))]
    add_products_plain(groups, x, sums);
}

/// Panics unless there are numbers for all taps and [`LANES`] sums.
#[inline(always)]
pub(crate) fn check<const N: usize>(groups: &[Group<N>], x: &[i16]) {
    const { assert!(N % 16 == 0, "taps in whole rows") };
    let fits = |group: &Group<N>| group.start + 2 * N + LANES - 1 <= x.len();
    assert!(groups.iter().all(fits), "numbers under every tap");
}

/// Runs the reference implementation.
pub(crate) fn add_products_plain<const N: usize>(
    groups: &[Group<N>],
    x: &[i16],
    sums: &mut [i32; LANES],
) {
    for group in groups {
        for (n, sum) in sums.iter_mut().enumerate() {
            *sum = sum.wrapping_add(product(&group.taps, &x[group.start + n..]));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use millstream_testkit::cost;

    const ONE: f32 = 1024.0;

    fn noise(n: usize, seed: u32) -> Vec<f32> {
        let hash = |i: u32| (i + 977 * seed).wrapping_mul(2_654_435_761) >> 8;
        (0..n as u32).map(|i| hash(i) as f32 / 1e6 - 8.4).collect()
    }

    fn rounded(x: &[f32]) -> Vec<i16> {
        let mut out = vec![0; x.len()];
        round(x, ONE, &mut out);
        out
    }

    #[test]
    fn numbers_are_rounded_and_cut() {
        let exact = [512, -256, 32767, -32767, 1, -7168];
        assert_eq!(rounded(&[0.5, -0.25, 1e9, -1e9, 0.000_6, -7.0]), exact);
        let x = noise(100, 3);
        let mut plain = vec![0; 100];
        round_body::<false>(&x, ONE, &mut plain);
        assert_eq!(plain, rounded(&x));
    }

    #[test]
    fn it_is_the_filter_in_floats_but_for_rounding() {
        for count in [32, 64, 96, 192] {
            let (taps, x) = (noise(32, 1), noise(count + 31, 2));
            let taps: Vec<f32> = taps.iter().map(|tap| tap / 40.0).collect();
            let [mut out, mut exact] = [0, 1].map(|_| vec![0.0; count]);
            let pairs: [[f32; 2]; 16] = std::array::from_fn(|j| [taps[2 * j], taps[2 * j + 1]]);
            PairTaps::new(&pairs).correlate(&rounded(&x), ONE, &mut out);
            crate::fir::correlate(&taps, &x, &mut exact);
            // Sixteen bits on either side.
            let worst = out.iter().zip(exact).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
            assert!(worst < 0.01, "{count}: {worst}");
        }
    }

    /// Returns numbers of the largest magnitudes.
    fn loud(n: usize) -> Vec<i16> {
        (0..n).map(|i| [i16::MAX, -i16::MAX, 12_345][(i * i + i / 7) % 3]).collect()
    }

    /// Checks the copies against the reference, for these numbers of taps and outputs.
    fn check_filter<const N: usize>(taps: &[[f32; 2]; N], blocks: usize) {
        let x = loud(blocks * BLOCK + 2 * N - 1);
        let taps = PairTaps::new(taps).pairs;
        let mut plain = vec![[0.0; BLOCK]; blocks];
        correlate_plain(&taps, &x, 1e-3, &mut plain);
        assert!(plain[blocks - 1][5] != 0.0);
        #[cfg(all(target_arch = "aarch64", target_endian = "little"))]
        {
            let mut fast = vec![[0.0; BLOCK]; blocks];
            // SAFETY: this test made long enough slices.
            unsafe { neon::correlate(&taps, &x, 1e-3, &mut fast) };
            assert_eq!(fast, plain);
        }
        #[cfg(target_arch = "x86_64")]
        {
            let mut fast = vec![[0.0; BLOCK]; blocks];
            if crate::simd::has_avx2_fma() {
                // SAFETY: `simd` has found the features; this test made long enough slices.
                unsafe { avx2::correlate_256(&taps, &x, 1e-3, &mut fast) };
                assert_eq!(fast, plain);
            }
            fast.fill([0.0; BLOCK]);
            #[cfg(avx512)]
            if crate::simd::has_vnni() {
                // SAFETY: `simd` has found the features; this test made long enough slices.
                unsafe { avx512::correlate_512(&taps, &x, 1e-3, &mut fast) };
                assert_eq!(fast, plain);
            }
        }
    }

    #[test]
    fn the_fast_filters_give_the_same_bits_at_the_loudest() {
        for blocks in [1, 2, 3] {
            check_filter(&[[1.0, 1.0]; 16], blocks);
            check_filter::<16>(&std::array::from_fn(|j| [j as f32 - 7.3, -0.2]), blocks);
            check_filter::<416>(&std::array::from_fn(|j| [j as f32 - 7.3, -0.2]), blocks);
            check_filter::<32>(&std::array::from_fn(|j| [-0.3, j as f32 - 20.1]), blocks);
        }
    }

    #[test]
    fn the_fast_sums_give_the_same_bits() {
        let x = loud(200);
        for count in 0..5 {
            let taps = |g: usize| std::array::from_fn(|j| [(j * 997 + g) as i16, -(j as i16)]);
            let group = |g: usize| Group::<16> { start: [3, 60, 153, 0][g], taps: taps(g) };
            let groups: Vec<_> = (0..count).map(|g| group(g % 4)).collect();
            let start: [i32; LANES] = std::array::from_fn(|n| n as i32 * 100 - 700);
            let mut plain = start;
            add_products_plain(&groups, &x, &mut plain);
            let mut best = start;
            add_products(&groups, &x, &mut best);
            assert_eq!(best, plain);
            #[cfg(target_arch = "x86_64")]
            if crate::simd::has_avx2_fma() {
                let mut fast = start;
                // SAFETY: `simd` has found the features; this test made long enough slices.
                unsafe { avx2::add_products_256(&groups, &x, &mut fast) };
                assert_eq!(fast, plain);
            }
        }
    }

    #[test]
    #[should_panic(expected = "numbers under every tap")]
    fn a_group_beyond_the_numbers_is_refused() {
        add_products(&[Group { start: 154, taps: [[1; 2]; 16] }], &loud(200), &mut [0; LANES]);
    }

    /// Runs a filter of `2 N` taps; the outputs of arm64_cost.py are `blocks * BLOCK`.
    fn cost<const N: usize>(blocks: usize) {
        let x = loud(blocks * BLOCK + 2 * N - 1);
        let taps = PairTaps::new(&std::array::from_fn::<_, N, _>(|j| [j as f32 - 7.3, -0.2]));
        let [mut plain, mut fast] = [0, 1].map(|_| vec![[0.0; BLOCK]; blocks]);
        cost::repeat(
            || correlate_plain(&taps.pairs, &x, 1e-3, &mut plain),
            || taps.correlate(&x, ONE, fast.as_flattened_mut()),
        );
        assert!(plain[0][5] != 0.0 || fast[0][5] != 0.0);
    }

    #[test]
    #[ignore = "counted by docs/evidence/arm64_cost.py"]
    fn cost_of_a_short_filter() {
        cost::<16>(26);
    }

    #[test]
    #[ignore = "counted by docs/evidence/arm64_cost.py"]
    fn cost_of_a_long_filter() {
        cost::<416>(1);
    }

    #[test]
    #[ignore = "counted by docs/evidence/arm64_cost.py"]
    fn cost_of_scattered_taps() {
        let x = loud(200);
        let taps = std::array::from_fn(|j| [j as i16 * 997, -(j as i16)]);
        let groups = [3, 60, 100, 153].map(|start| Group::<16> { start, taps });
        let [mut plain, mut fast] = [[0; LANES]; 2];
        cost::repeat(
            || add_products_plain(&groups, &x, &mut plain),
            || add_products(&groups, &x, &mut fast),
        );
        assert!(plain[0] != 0 || fast[0] != 0);
    }

    #[test]
    #[ignore = "counted by docs/evidence/arm64_cost.py"]
    fn cost_of_rounding() {
        let x = noise(832, 3);
        let [mut plain, mut fast] = [[0; 832]; 2];
        cost::repeat(|| round_body::<false>(&x, ONE, &mut plain), || round(&x, ONE, &mut fast));
        assert!(plain[5] != 0 || fast[5] != 0);
    }
}
