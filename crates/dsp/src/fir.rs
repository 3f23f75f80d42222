//! A real block filter.

use crate::{multiversion, simd::madd};

/// Outputs computed together.
const BLOCK: usize = 32;

multiversion! {
    /// `out[n] = sum over j of taps[j] * x[n + j]`.
    ///
    /// `x` must hold `out.len() + taps.len() - 1` values.
    ///
    /// # Panics
    /// If `x` is shorter than that.
    pub fn correlate(taps: &[f32], x: &[f32], out: &mut [f32]) = correlate_body;
}

#[inline(always)]
fn correlate_body<const FMA: bool>(taps: &[f32], x: &[f32], out: &mut [f32]) {
    assert!(x.len() + 1 >= out.len() + taps.len(), "a filter needs its history");
    let (blocks, tail) = out.as_chunks_mut::<BLOCK>();
    let tail_start = blocks.len() * BLOCK;
    for (b, block) in blocks.iter_mut().enumerate() {
        let mut sums = [0.0; BLOCK];
        let start = b * BLOCK;
        let x = &x[start..start + BLOCK + taps.len() - 1];
        for (tap, x) in taps.iter().zip(x.windows(BLOCK)) {
            for lane in 0..BLOCK {
                sums[lane] = madd::<FMA>(*tap, x[lane], sums[lane]);
            }
        }
        *block = sums;
    }
    for (n, out) in tail.iter_mut().enumerate() {
        let x = &x[tail_start + n..];
        *out = taps.iter().zip(x).fold(0.0, |sum, (tap, x)| madd::<FMA>(*tap, *x, sum));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn data(n: usize) -> Vec<f32> {
        (0..n as u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 8) as f32 / 1e7 - 0.8).collect()
    }

    #[test]
    fn agrees_with_the_plain_sum_within_rounding() {
        for (count, len) in [(1, 1), (7, 5), (32, 3), (100, 96), (832, 64)] {
            let (taps, x) = (data(len), data(count + len - 1));
            let mut out = vec![0.0; count];
            correlate(&taps, &x, &mut out);
            let mut plain = out.clone();
            correlate_body::<false>(&taps, &x, &mut plain);
            for n in 0..count {
                let exact: f64 = (0..len).map(|j| f64::from(taps[j]) * f64::from(x[n + j])).sum();
                let scale: f64 =
                    (0..len).map(|j| (f64::from(taps[j]) * f64::from(x[n + j])).abs()).sum();
                let bound = 1e-6 * scale + 1e-12;
                assert!((f64::from(out[n]) - exact).abs() < bound, "{count} {len} {n}");
                assert!((f64::from(plain[n]) - exact).abs() < bound, "{count} {len} {n}");
            }
        }
    }
}
