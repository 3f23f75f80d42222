//! Filters with many taps, by Fourier transforms of overlapping pieces (overlap-save).

use crate::Sample;
use rustfft::{Fft, FftPlanner};
use std::fmt;
use std::sync::Arc;

/// A filter `y[n] = Σₖ taps[k] · x[n - k]` of windows that begin with their history.
pub struct OverlapSave {
    taps: usize,
    forward: Arc<dyn Fft<f32>>,
    backward: Arc<dyn Fft<f32>>,
    /// The transform of the taps, over the size.
    response: Vec<Sample>,
    work: Vec<Sample>,
    scratch: Vec<Sample>,
}

impl OverlapSave {
    /// Creates a filter.
    ///
    /// # Panics
    /// Without taps.
    #[must_use]
    pub fn new(taps: &[Sample]) -> Self {
        assert!(!taps.is_empty(), "a filter needs taps");
        // Eight times the taps: seven eighths of each transform are results.
        let size = (8 * taps.len()).next_power_of_two().max(64);
        let mut planner = FftPlanner::new();
        let (forward, backward) = (planner.plan_fft_forward(size), planner.plan_fft_inverse(size));
        let scratch = forward.get_inplace_scratch_len().max(backward.get_inplace_scratch_len());
        let mut response: Vec<_> = taps.iter().map(|tap| tap / size as f32).collect();
        response.resize(size, Sample::default());
        forward.process(&mut response);
        let (work, scratch) = (response.clone(), vec![Sample::default(); scratch]);
        Self { taps: taps.len(), forward, backward, response, work, scratch }
    }

    /// Returns the number of results of one transform.
    #[must_use]
    pub fn piece(&self) -> usize {
        self.work.len() + 1 - self.taps
    }

    /// Computes every result whose samples are in `x`, and keeps one of `decimation`: `out[m] = Σₖ
    /// taps[k] · x[taps - 1 + m · decimation - k]`.
    ///
    /// # Panics
    /// If `x` is shorter than the taps and the last result need, or `decimation` is zero.
    pub fn filter(&mut self, x: &[Sample], decimation: usize, out: &mut [Sample]) {
        let Some(last) = out.len().checked_sub(1) else { return };
        let history = self.taps - 1;
        let results = last * decimation + 1;
        assert!(x.len() >= history + results, "a filter needs its history");
        let (mut start, mut made) = (0, 0);
        while start < results {
            let count = (results - start).min(self.piece());
            let (samples, rest) = self.work.split_at_mut(history + count);
            samples.copy_from_slice(&x[start..start + history + count]);
            rest.fill(Sample::default());
            self.forward.process_with_scratch(&mut self.work, &mut self.scratch);
            for (x, response) in self.work.iter_mut().zip(&self.response) {
                *x *= response;
            }
            self.backward.process_with_scratch(&mut self.work, &mut self.scratch);
            let first = (made * decimation).saturating_sub(start);
            let kept = self.work[history..history + count].iter().skip(first).step_by(decimation);
            for (to, from) in out[made..].iter_mut().zip(kept) {
                *to = *from;
                made += 1;
            }
            start += count;
        }
    }
}

impl fmt::Debug for OverlapSave {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OverlapSave").field("taps", &self.taps).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::noise::Noise;

    fn exact(taps: &[Sample], x: &[Sample], at: usize) -> Sample {
        let sum = taps.iter().enumerate().fold((0.0, 0.0), |(re, im), (k, tap)| {
            let (x, tap) = (x[at - k], *tap);
            let (a, b) = (f64::from(tap.re), f64::from(tap.im));
            let (c, d) = (f64::from(x.re), f64::from(x.im));
            (re + a * c - b * d, im + a * d + b * c)
        });
        Sample::new(sum.0 as f32, sum.1 as f32)
    }

    #[test]
    fn agrees_with_the_sum_whatever_the_lengths() {
        let mut noise = Noise::new(1);
        for (taps, results, decimation) in
            [(1, 1, 1), (1, 200, 3), (9, 64, 1), (200, 5000, 1), (200, 700, 7), (33, 3, 500)]
        {
            let history = taps - 1;
            let length = taps;
            let taps: Vec<_> = (0..length).map(|_| noise.gaussian_pair()).collect();
            let samples = history + (results - 1) * decimation + 1;
            let x: Vec<_> = (0..samples).map(|_| noise.gaussian_pair()).collect();
            let mut out = vec![Sample::default(); results];
            OverlapSave::new(&taps).filter(&x, decimation, &mut out);
            let scale = (length as f32).sqrt() * 2.0;
            for (m, y) in out.iter().enumerate() {
                let error = (y - exact(&taps, &x, history + m * decimation)).norm();
                assert!(error < 3e-6 * scale, "{length} taps, 1 of {decimation}, {m}: {error}");
            }
        }
    }

    #[test]
    fn nothing_comes_of_nothing() {
        OverlapSave::new(&[Sample::new(1.0, 0.0)]).filter(&[], 1, &mut []);
    }
}
