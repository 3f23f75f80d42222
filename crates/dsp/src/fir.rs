//! A block filter with real taps: bare sums, and [`Fir`] for a stream.

use crate::chunks::Chunks;
use crate::{Sample, multiversion, simd::madd};

/// Outputs computed together, in real numbers.
const BLOCK: usize = 32;

multiversion! {
    /// Computes `out[n] = sum over j of taps[j] * x[n + j]`.
    ///
    /// `x` must hold `out.len() + taps.len() - 1` values.
    ///
    /// # Panics
    /// If `x` is shorter than that.
    pub fn correlate(taps: &[f32], x: &[f32], out: &mut [f32]) = correlate_real, avx512;
}

multiversion! {
    /// Computes [`correlate`] for complex samples, with real taps.
    ///
    /// # Panics
    /// If `x` is shorter than `out.len() + taps.len() - 1`.
    pub fn correlate_complex(taps: &[f32], x: &[Sample], out: &mut [Sample])
        = correlate_pairs, avx512;
}

#[inline(always)]
fn correlate_real<const FMA: bool>(taps: &[f32], x: &[f32], out: &mut [f32]) {
    correlate_body::<FMA, 1>(taps, x, out);
}

/// Filters complex samples as two interleaved real streams.
#[inline(always)]
fn correlate_pairs<const FMA: bool>(taps: &[f32], x: &[Sample], out: &mut [Sample]) {
    correlate_body::<FMA, 2>(taps, bytemuck::cast_slice(x), bytemuck::cast_slice_mut(out));
}

/// Filters `STRIDE` interleaved streams separately.
#[inline(always)]
fn correlate_body<const FMA: bool, const STRIDE: usize>(taps: &[f32], x: &[f32], out: &mut [f32]) {
    assert!(x.len() + STRIDE >= out.len() + taps.len() * STRIDE, "a filter needs its history");
    // Sums of twice the length hide the latency of the fused instruction; the baseline has too few
    // registers for them.
    let long = if FMA { in_blocks::<FMA, STRIDE, { 2 * BLOCK }>(taps, x, out) } else { 0 };
    let (x, out) = (&x[long..], &mut out[long..]);
    let short = in_blocks::<FMA, STRIDE, BLOCK>(taps, x, out);
    let (x, out) = (&x[short..], &mut out[short..]);
    for (n, out) in out.iter_mut().enumerate() {
        let x = x[n..].iter().step_by(STRIDE);
        *out = taps.iter().zip(x).fold(0.0, |sum, (tap, x)| madd::<FMA>(*tap, *x, sum));
    }
}

/// Computes the outputs in whole blocks of `N`; returns their number.
#[inline(always)]
fn in_blocks<const FMA: bool, const STRIDE: usize, const N: usize>(
    taps: &[f32],
    x: &[f32],
    out: &mut [f32],
) -> usize {
    let (blocks, _) = out.in_chunks_mut::<N>();
    let history = taps.len().saturating_sub(1) * STRIDE;
    for (b, block) in blocks.iter_mut().enumerate() {
        let mut sums = [0.0; N];
        let x = &x[b * N..b * N + N + history];
        for (tap, x) in taps.iter().zip(x.windows(N).step_by(STRIDE)) {
            for lane in 0..N {
                sums[lane] = madd::<FMA>(*tap, x[lane], sums[lane]);
            }
        }
        *block = sums;
    }
    blocks.len() * N
}

/// Returns the group delay of a filter, in samples of its taps' rate, by the power of each tap: the
/// mean over all frequencies, weighted by the power that passes, which is the centroid of the taps'
/// power. It is that of a symmetric filter at every frequency: half of its taps less one. Zero
/// without taps.
#[must_use]
pub fn group_delay(power: impl IntoIterator<Item = f32>) -> f64 {
    let (mut sum, mut moment) = (0.0, 0.0);
    for (n, power) in power.into_iter().enumerate() {
        sum += f64::from(power);
        moment += n as f64 * f64::from(power);
    }
    // Symmetric taps have half a sample exactly, in spite of rounding.
    let rounded = (moment / sum * 2.0).round() / 2.0;
    match moment / sum {
        delay if delay.is_nan() => 0.0,
        delay if (delay - rounded).abs() < 1e-6 * (1.0 + delay) => rounded,
        delay => delay,
    }
}

/// The items of a [`Fir`]: `f32` or [`Sample`].
pub trait Filtered: Copy + Default {
    /// Computes [`correlate`] for this type.
    fn correlate(taps: &[f32], x: &[Self], out: &mut [Self]);
}

impl Filtered for f32 {
    fn correlate(taps: &[f32], x: &[Self], out: &mut [Self]) {
        correlate(taps, x, out);
    }
}

impl Filtered for Sample {
    fn correlate(taps: &[f32], x: &[Self], out: &mut [Self]) {
        correlate_complex(taps, x, out);
    }
}

/// A filter for a stream that comes in pieces: `y[n] = sum over k of taps[k] * x[n - k]`, where
/// samples before the first are zero.
///
/// The result does not depend on how the stream is cut, except for rounding.
///
/// ```
/// let mut fir = millstream_dsp::fir::Fir::new(&[1.0, 0.5]);
/// let mut y = [0.0; 3];
/// fir.process(&[2.0f32, 0.0, 4.0], &mut y);
/// assert_eq!(y, [2.0, 1.0, 4.0]);
/// fir.process(&[0.0], &mut y[..1]);
/// assert_eq!(y[0], 2.0);
/// ```
#[derive(Clone, Debug)]
pub struct Fir<T> {
    /// Last tap first.
    taps: Vec<f32>,
    /// The last samples of the previous call, then room for the first of the next.
    seam: Vec<T>,
    /// The number of outputs of a call that are computed in `seam`, because their taps reach
    /// samples of the previous call; in whole blocks.
    seam_outputs: usize,
}

impl<T: Filtered> Fir<T> {
    /// Creates a filter without history. Without taps its output is zero.
    #[must_use]
    pub fn new(taps: &[f32]) -> Self {
        let taps: Vec<f32> = if taps.is_empty() { vec![0.0] } else { taps.to_vec() };
        let history = taps.len() - 1;
        let seam_outputs = history.next_multiple_of(BLOCK);
        Self {
            taps: taps.into_iter().rev().collect(),
            seam: vec![T::default(); history + seam_outputs],
            seam_outputs,
        }
    }

    /// Changes the taps from the next sample on. As much of the history stays as the filter had.
    pub fn set_taps(&mut self, taps: &[f32]) {
        let next = Self::new(taps);
        let (before, history) = (self.taps.len() - 1, next.taps.len() - 1);
        let kept = before.min(history);
        let seam = std::mem::replace(self, next).seam;
        self.seam[history - kept..history].copy_from_slice(&seam[before - kept..before]);
    }

    /// Filters the next `input` into `output`.
    ///
    /// # Panics
    /// If they differ in length.
    pub fn process(&mut self, input: &[T], output: &mut [T]) {
        assert_eq!(input.len(), output.len(), "a filter gives one output for each input");
        let history = self.taps.len() - 1;
        let first = self.seam_outputs.min(input.len());
        self.seam[history..history + first].copy_from_slice(&input[..first]);
        let (near, far) = output.split_at_mut(first);
        T::correlate(&self.taps, &self.seam[..history + first], near);
        if !far.is_empty() {
            T::correlate(&self.taps, &input[first - history..], far);
        }
        if input.len() >= history {
            self.seam[..history].copy_from_slice(&input[input.len() - history..]);
        } else {
            self.seam.copy_within(input.len()..input.len() + history, 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn data(n: usize) -> Vec<f32> {
        (0..n as u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 8) as f32 / 1e7 - 0.8).collect()
    }

    #[test]
    fn the_delay_is_the_middle_of_symmetric_taps_and_that_of_a_pure_delay() {
        let of = |taps: &[f32]| group_delay(taps.iter().map(|tap| tap * tap));
        assert_eq!(of(&[0.1, 0.3, 0.7, 0.7, 0.3, 0.1]), 2.5);
        assert_eq!(of(&[-1.0, 0.0, 1.0]), 1.0);
        assert_eq!([of(&[0.0, 0.0, 0.0, 2.0]), of(&[]), of(&[0.0])], [3.0, 0.0, 0.0]);
    }

    #[test]
    fn other_taps_keep_the_history() {
        let x = data(300);
        for (before, after) in [(9, 9), (40, 7), (1, 3), (8, 90)] {
            let (mut y, mut expected) = (vec![0.0; 300], vec![0.0; 300]);
            let mut filter = Fir::new(&data(before));
            filter.process(&x[..100], &mut y[..100]);
            filter.set_taps(&data(after));
            filter.process(&x[100..], &mut y[100..]);
            Fir::new(&data(after)).process(&x, &mut expected);
            let from = if after > before { 100 + after } else { 100 };
            let same = y.iter().zip(&expected).skip(from).all(|(a, b)| (a - b).abs() < 1e-4);
            assert!(same, "{before} taps, then {after}");
        }
    }

    #[test]
    fn agrees_with_the_plain_sum_within_rounding() {
        for (count, len) in [(1, 1), (7, 5), (32, 3), (100, 96), (832, 64), (95, 16)] {
            let (taps, x) = (data(len), data(count + len - 1));
            let mut out = vec![0.0; count];
            correlate(&taps, &x, &mut out);
            let mut plain = out.clone();
            correlate_body::<false, 1>(&taps, &x, &mut plain);
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

    #[test]
    fn complex_samples_are_two_real_streams() {
        for (count, len) in [(1, 1), (7, 5), (16, 3), (17, 16), (500, 64)] {
            let (taps, re, im) = (data(len), data(count + len - 1), data(count + len + 6));
            let x: Vec<Sample> =
                re.iter().zip(&im[7..]).map(|(i, q)| Sample::new(*i, *q)).collect();
            let mut out = vec![Sample::default(); count];
            correlate_complex(&taps, &x, &mut out);
            let (mut i, mut q) = (vec![0.0; count], vec![0.0; count]);
            correlate(&taps, &re, &mut i);
            correlate(&taps, &im[7..], &mut q);
            for n in 0..count {
                assert!((out[n] - Sample::new(i[n], q[n])).norm() < 1e-4, "{count} {len} {n}");
            }
        }
    }

    #[test]
    fn a_stream_may_be_cut_anywhere() {
        let x = data(1000);
        for len in [0, 1, 2, 16, 33, 100] {
            let taps = data(len);
            let mut whole = Fir::new(&taps);
            let mut expected = vec![0.0; x.len()];
            whole.process(&x, &mut expected);
            for cut in [1, 2, 15, 31, 32, 33, 999] {
                let mut fir = Fir::new(&taps);
                let mut y = vec![0.0; x.len()];
                for (x, y) in x.chunks(cut).zip(y.chunks_mut(cut)) {
                    fir.process(x, y);
                }
                let near = |(a, b): (&f32, &f32)| (a - b).abs() < 1e-4;
                assert!(y.iter().zip(&expected).all(near), "{len} taps, pieces of {cut}");
            }
        }
    }

    #[test]
    fn an_impulse_shows_the_taps() {
        let mut y = [0.0; 5];
        Fir::new(&[1.0, 2.0, 3.0]).process(&[1.0, 0.0, 0.0, 0.0, 0.0], &mut y);
        assert_eq!(y, [1.0, 2.0, 3.0, 0.0, 0.0]);
    }
}
