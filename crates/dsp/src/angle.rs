//! Angles of complex samples, and the FM demodulator based on them.

use crate::simd::madd;
use crate::{Sample, multiversion};
use std::f32::consts::{FRAC_PI_2, PI};

/// `atan(a) / a` as a polynomial of `a²` on 0..=1: Chebyshev's fit of degree 8, within 3e-8.
const ATAN: [f32; 9] = [
    0.999_999_98,
    -0.333_330_67,
    0.199_924_84,
    -0.142_025_71,
    0.106_367_54,
    -0.074_954_45,
    0.042_587_61,
    -0.016_005_03,
    0.002_834_06,
];

/// Returns `atan2(im, re)` within 5e-7 rad; 0 for zero.
#[inline(always)]
fn atan2<const FMA: bool>(im: f32, re: f32) -> f32 {
    let (x, y) = (re.abs(), im.abs());
    let (small, large) = if y > x { (x, y) } else { (y, x) };
    let a = small / large.max(f32::MIN_POSITIVE);
    let z = a * a;
    let mut sum = ATAN[ATAN.len() - 1];
    for k in (0..ATAN.len() - 1).rev() {
        sum = madd::<FMA>(sum, z, ATAN[k]);
    }
    let octant = sum * a;
    let quadrant = if y > x { FRAC_PI_2 - octant } else { octant };
    let half = if re < 0.0 { PI - quadrant } else { quadrant };
    half.copysign(im)
}

multiversion! {
    /// Computes the angle of every sample, radians in -π..=π, within 5e-7.
    ///
    /// # Panics
    /// If the slices differ in length.
    pub fn arg(input: &[Sample], out: &mut [f32]) = arg_body;
}

#[inline(always)]
fn arg_body<const FMA: bool>(input: &[Sample], out: &mut [f32]) {
    assert_eq!(input.len(), out.len(), "as many angles as samples");
    for (out, x) in out.iter_mut().zip(input) {
        *out = atan2::<FMA>(x.im, x.re);
    }
}

multiversion! {
    /// Computes `out[n] = gain · arg(x[n] · conj(x[n - 1]))`, the frequency of a signal, where
    /// `before` is the sample before the first.
    ///
    /// # Panics
    /// If the slices differ in length.
    pub fn turns(before: Sample, input: &[Sample], gain: f32, out: &mut [f32]) = turns_body;
}

#[inline(always)]
fn turns_body<const FMA: bool>(before: Sample, input: &[Sample], gain: f32, out: &mut [f32]) {
    assert_eq!(input.len(), out.len(), "as many turns as samples");
    let Some((first, rest)) = out.split_first_mut() else { return };
    let turn = |x: Sample, last: Sample| {
        // The same rounding for the first sample as for the others, fused or not.
        let re = madd::<FMA>(x.re, last.re, x.im * last.im);
        let im = madd::<FMA>(x.im, last.re, -(x.re * last.im));
        gain * atan2::<FMA>(im, re)
    };
    *first = turn(input[0], before);
    for ((out, x), last) in rest.iter_mut().zip(&input[1..]).zip(input) {
        *out = turn(*x, *last);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn angles_agree_with_the_library_all_around() {
        let mut input = vec![Sample::default(), Sample::new(-1.0, 0.0), Sample::new(0.0, -2.0)];
        for n in 0..10_000 {
            let (angle, radius) = (f64::from(n) * 0.000_628_4 - 3.2, 1e-15 * 1.007f64.powi(n));
            input.push(Sample::new((radius * angle.cos()) as f32, (radius * angle.sin()) as f32));
        }
        let mut out = vec![0.0; input.len()];
        arg(&input, &mut out);
        for (x, angle) in input.iter().zip(out) {
            let exact = f64::from(x.im).atan2(f64::from(x.re));
            assert!((f64::from(angle) - exact).abs() < 5e-7, "{x}: {angle} {exact}");
        }
    }

    #[test]
    fn a_tone_turns_at_its_frequency() {
        let step = 0.7;
        let tone = |n: usize| Sample::from_polar(3.0, (step * n as f32) % std::f32::consts::TAU);
        let input: Vec<Sample> = (0..300).map(tone).collect();
        let mut out = vec![0.0; 299];
        turns(input[0], &input[1..], 2.0, &mut out);
        assert!(out.iter().all(|x| (x - 2.0 * step).abs() < 1e-4));
    }
}
