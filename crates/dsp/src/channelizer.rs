//! A bank of filters at evenly spaced frequencies, each moved to frequency zero (polyphase
//! channelizer).

use crate::{Sample, multiversion, simd::madd};
use rustfft::{Fft, FftPlanner};
use std::fmt;
use std::sync::Arc;

/// A channelizer of windows that begin with their history.
pub struct Channelizer {
    channels: usize,
    hop: usize,
    taps: usize,
    /// The taps backwards, so that each row of `channels` meets samples in their order; the last
    /// row has zeros in front.
    rows: Vec<f32>,
    fft: Arc<dyn Fft<f32>>,
    sums: Vec<Sample>,
    scratch: Vec<Sample>,
}

impl Channelizer {
    /// Creates a channelizer by the filter of channel 0.
    ///
    /// # Panics
    /// Without taps, with less than two channels, or if `hop` does not divide their number.
    #[must_use]
    pub fn new(channels: usize, hop: usize, taps: &[f32]) -> Self {
        assert!(!taps.is_empty() && channels > 1, "a bank needs channels and taps");
        assert!(hop > 0 && channels % hop == 0, "the hop must divide the channels");
        let padded = taps.len().next_multiple_of(channels);
        let mut rows = vec![0.0; padded];
        for (row, taps) in rows.chunks_mut(channels).zip(taps.chunks(channels)) {
            for (to, tap) in row.iter_mut().rev().zip(taps) {
                *to = *tap;
            }
        }
        let fft = FftPlanner::new().plan_fft_inverse(channels);
        let scratch = vec![Sample::default(); fft.get_inplace_scratch_len()];
        let sums = vec![Sample::default(); channels];
        Self { channels, hop, taps: taps.len(), rows, fft, sums, scratch }
    }

    /// Computes sets of results, one of all channels every `hop` samples: `out[h · channels + c] =
    /// Σₙ taps[n] · x[h · hop - n] · exp(-j 2π c (h · hop - n) / channels)`, where `x[0]` is the
    /// sample behind the history of as many samples as there are taps, less one.
    ///
    /// # Panics
    /// If `x` is shorter than the history and the last set need, or `out` is no whole number of
    /// sets.
    pub fn filter(&mut self, x: &[Sample], out: &mut [Sample]) {
        let Self { channels, hop, taps, rows, fft, sums, scratch } = self;
        let (channels, hop) = (*channels, *hop);
        assert!(out.len() % channels == 0, "results come in sets of all channels");
        for (h, out) in out.chunks_exact_mut(channels).enumerate() {
            sums.fill(Sample::default());
            for (p, row) in rows.chunks_exact(channels).enumerate() {
                // The row's last tap belongs to this sample.
                let end = h * hop + *taps - p * channels;
                let count = end.min(channels);
                add_products(&row[channels - count..], &x[end - count..end], {
                    &mut sums[channels - count..]
                });
            }
            // Sum `r` stands at `channels - 1 - r`. The transform's phases begin anew every
            // `channels` samples, so the sums of a set begin at `h · hop`.
            let first = (h * hop) % channels;
            for (r, to) in out.iter_mut().enumerate() {
                *to = sums[channels - 1 - (r + first) % channels];
            }
            fft.process_with_scratch(out, scratch);
        }
    }
}

multiversion! {
    fn add_products(taps: &[f32], x: &[Sample], sums: &mut [Sample]) = add_products_body;
}

#[inline(always)]
fn add_products_body<const FMA: bool>(taps: &[f32], x: &[Sample], sums: &mut [Sample]) {
    for ((sum, x), tap) in sums.iter_mut().zip(x).zip(taps) {
        *sum = Sample::new(madd::<FMA>(*tap, x.re, sum.re), madd::<FMA>(*tap, x.im, sum.im));
    }
}

impl fmt::Debug for Channelizer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Channelizer")
            .field("channels", &self.channels)
            .field("hop", &self.hop)
            .field("taps", &self.taps)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::noise::Noise;
    use std::f64::consts::TAU;

    #[test]
    fn agrees_with_the_formula_whatever_the_lengths() {
        let mut noise = Noise::new(2);
        for (channels, hop, length) in
            [(2, 1, 1), (2, 2, 5), (5, 1, 23), (8, 4, 64), (8, 8, 65), (12, 3, 7), (64, 32, 700)]
        {
            let taps: Vec<f32> = (0..length).map(|_| noise.gaussian_pair().re).collect();
            let sets = 2 * channels / hop + 1;
            let samples = length - 1 + (sets - 1) * hop + 1;
            let x: Vec<_> = (0..samples).map(|_| noise.gaussian_pair()).collect();
            let mut out = vec![Sample::default(); sets * channels];
            Channelizer::new(channels, hop, &taps).filter(&x, &mut out);
            for (h, set) in out.chunks(channels).enumerate() {
                for (c, y) in set.iter().enumerate() {
                    let (mut re, mut im) = (0.0, 0.0);
                    for (n, tap) in taps.iter().enumerate() {
                        let at = (h * hop) as f64 - n as f64;
                        let (sin, cos) = (-TAU * c as f64 * at / channels as f64).sin_cos();
                        let x = x[length - 1 + h * hop - n];
                        let (xr, xi, tap) = (f64::from(x.re), f64::from(x.im), f64::from(*tap));
                        re += tap * (xr * cos - xi * sin);
                        im += tap * (xr * sin + xi * cos);
                    }
                    let error = (f64::from(y.re) - re).hypot(f64::from(y.im) - im);
                    let bound = 4e-6 * (length as f64).sqrt();
                    assert!(error < bound, "{channels}/{hop}, {length}: {h} {c}: {error}");
                }
            }
        }
    }
}
