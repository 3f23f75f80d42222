//! Multiplication of a stream by a constant.

use crate::chunks::Chunks;
use crate::{Sample, multiversion, simd::madd};

/// Real numbers processed together: two of the widest registers.
const BLOCK: usize = 32;

multiversion! {
    /// Computes `out[n] = factor * x[n]`, up to the end of the shorter slice.
    pub fn scale(factor: f32, x: &[f32], out: &mut [f32]) = scale_real, avx512;
}

multiversion! {
    /// Computes [`scale`] for complex samples.
    pub fn scale_complex(factor: Sample, x: &[Sample], out: &mut [Sample]) = scale_pairs, avx512;
}

#[inline(always)]
fn scale_real<const FMA: bool>(factor: f32, x: &[f32], out: &mut [f32]) {
    for (out, x) in out.iter_mut().zip(x) {
        *out = factor * *x;
    }
}

#[inline(always)]
fn scale_pairs<const FMA: bool>(factor: Sample, x: &[Sample], out: &mut [Sample]) {
    let items = x.len().min(out.len());
    let (x, out) = (bytemuck::cast_slice(&x[..items]), bytemuck::cast_slice_mut(&mut out[..items]));
    let (blocks, tail) = <[f32]>::in_chunks_mut::<BLOCK>(out);
    let (x_blocks, x_tail) = <[f32]>::in_chunks::<BLOCK>(x);
    for (out, x) in blocks.iter_mut().zip(x_blocks) {
        rotate::<FMA, BLOCK>(factor, x, out);
    }
    let (pairs, _) = tail.in_chunks_mut::<2>();
    let (x_pairs, _) = x_tail.in_chunks::<2>();
    for (out, x) in pairs.iter_mut().zip(x_pairs) {
        rotate::<FMA, 2>(factor, x, out);
    }
}

/// Multiplies interleaved real and imaginary parts: each is `re` times itself plus or minus `im`
/// times its neighbour, so the only shuffle is one exchange of neighbours.
#[inline(always)]
fn rotate<const FMA: bool, const N: usize>(factor: Sample, x: &[f32; N], out: &mut [f32; N]) {
    let turned: [f32; N] = std::array::from_fn(|n| x[n ^ 1]);
    for n in 0..N {
        let im = if n % 2 == 0 { -factor.im } else { factor.im };
        out[n] = madd::<FMA>(x[n], factor.re, turned[n] * im);
    }
}

/// The types that a constant can multiply: `f32` or [`Sample`].
pub trait Scaled: Copy {
    /// Computes [`scale`] for this type.
    fn scale(factor: Self, x: &[Self], out: &mut [Self]);
}

impl Scaled for f32 {
    fn scale(factor: Self, x: &[Self], out: &mut [Self]) {
        scale(factor, x, out);
    }
}

impl Scaled for Sample {
    fn scale(factor: Self, x: &[Self], out: &mut [Self]) {
        scale_complex(factor, x, out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn data(n: usize) -> Vec<f32> {
        (0..n as u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 8) as f32 / 1e7 - 0.8).collect()
    }

    #[test]
    fn a_real_product_is_rounded_once_at_any_length() {
        for len in [0, 1, 31, 32, 33, 100] {
            let (x, mut out) = (data(len), vec![0.0; len]);
            scale(-1.7, &x, &mut out);
            assert!(x.iter().zip(&out).all(|(x, y)| *y == -1.7 * *x), "{len}");
        }
    }

    #[test]
    fn a_complex_product_is_the_exact_one_within_rounding() {
        let factor = Sample::new(0.8, -0.6);
        for len in [0, 1, 15, 16, 17, 100] {
            let x: Vec<Sample> =
                data(2 * len).chunks(2).map(|pair| Sample::new(pair[0], pair[1])).collect();
            let mut out = vec![Sample::default(); len];
            scale_complex(factor, &x, &mut out);
            let mut plain = out.clone();
            scale_pairs::<false>(factor, &x, &mut plain);
            for (n, x) in x.iter().enumerate() {
                let (re, im) = (f64::from(x.re), f64::from(x.im));
                let (c, s) = (f64::from(factor.re), f64::from(factor.im));
                for y in [out[n], plain[n]] {
                    let error = (f64::from(y.re) - (re * c - im * s))
                        .hypot(f64::from(y.im) - (re * s + im * c));
                    assert!(error <= 3e-7 * re.hypot(im), "{len} {n}: {y}");
                }
            }
        }
    }

    #[test]
    fn the_shorter_slice_counts() {
        let mut out = [5.0; 3];
        scale(2.0, &[1.0], &mut out);
        assert_eq!(out, [2.0, 5.0, 5.0]);
        let mut out = [Sample::new(5.0, 5.0); 2];
        scale_complex(Sample::new(0.0, 1.0), &[Sample::new(1.0, 2.0)], &mut out);
        assert_eq!(out, [Sample::new(-2.0, 1.0), Sample::new(5.0, 5.0)]);
    }
}
