//! Filters that change the rate by a fraction: interpolation, filter and decimation in one step.
//!
//! `y[m] = Σₖ h[k · up + p] · x[i - k]` with `i = ⌊m · down / up⌋` and `p = m · down mod up`;
//! samples before the first are zero. So output 0 depends on input 0 alone, and the delay is that
//! of the taps: half their number less one, in samples of `up` times the input rate. With `up = 1`
//! this is a decimating filter.

use crate::chunks::Chunks;
use crate::history::History;
use crate::simd::madd;
use crate::{Sample, multiversion};

/// Lanes of a window's sum.
const LANES: usize = 8;

/// Real or complex samples, as rows of floats.
pub trait Signal: Copy + Default + Send + bytemuck::Pod + sealed::Sealed {
    /// Floats in a sample.
    const PARTS: usize;
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for f32 {}
    impl Sealed for crate::Sample {}
}

impl Signal for f32 {
    const PARTS: usize = 1;
}

impl Signal for Sample {
    const PARTS: usize = 2;
}

/// Taps in the layout of windows: oldest sample first, each once for every part.
#[derive(Clone, Debug)]
struct Bank {
    /// Row `p` is `h[p], h[p + up], …` backwards, padded with zeros in front.
    re: Vec<f32>,
    /// The imaginary parts of the taps; empty for real taps.
    im: Vec<f32>,
    /// Samples of a window.
    window: usize,
}

impl Bank {
    fn new<X: Signal>(re: &[f32], im: &[f32], up: usize) -> Self {
        assert!(!re.is_empty() && up > 0, "a filter needs taps");
        let window = (re.len().div_ceil(up) * X::PARTS).next_multiple_of(LANES) / X::PARTS;
        let rows = |taps: &[f32]| {
            let tap = |p: usize, j: usize| taps.get((window - 1 - j) * up + p).copied();
            let parts = |(p, j)| std::iter::repeat_n(tap(p, j).unwrap_or(0.0), X::PARTS);
            (0..up).flat_map(|p| (0..window).map(move |j| (p, j))).flat_map(parts).collect()
        };
        let im = if im.iter().all(|x| *x == 0.0) { Vec::new() } else { rows(im) };
        Self { re: rows(re), im, window }
    }
}

/// A filter of real or complex samples `X` that produces `up` samples for every `down`.
#[derive(Clone, Debug)]
pub struct Resampler<X> {
    bank: Bank,
    history: History<X>,
    up: usize,
    down: usize,
    /// The row of the next output.
    phase: usize,
}

impl<X: Signal> Resampler<X> {
    /// Creates a filter with these taps, at `up` times the input rate.
    ///
    /// # Panics
    /// If there are no taps, or `up` or `down` is zero.
    #[must_use]
    pub fn new(taps: &[f32], up: usize, down: usize) -> Self {
        Self::with_bank(Bank::new::<X>(taps, &[], up), up, down)
    }

    fn with_bank(bank: Bank, up: usize, down: usize) -> Self {
        assert!(down > 0, "a rate without end");
        let history = History::new(bank.window);
        Self { bank, history, up, down, phase: 0 }
    }

    /// Changes the taps, at `up` times the input rate, from the next output on. The outputs stay
    /// where they are, and as much of the history stays as the filter had.
    ///
    /// # Panics
    /// Without taps.
    pub fn set_taps(&mut self, taps: &[f32]) {
        let bank = Bank::new::<X>(taps, &[], self.up);
        self.history.set_window(self.bank.window, bank.window);
        self.bank = bank;
    }

    /// Filters as many samples as fit; returns how many it took and made.
    pub fn process(&mut self, input: &[X], out: &mut [X]) -> (usize, usize) {
        let (mut taken, mut made) = (0, 0);
        while made < out.len() {
            let room = out.len() - made;
            let wanted = self.reach(room - 1).saturating_add(self.bank.window);
            let count = self.history.fill(&input[taken..], wanted);
            taken += count;
            let there = self.history.slice().len();
            let ready = self.ready(there).min(room);
            if count == 0 && ready == 0 {
                break;
            }
            self.filter(self.phase, self.history.slice(), &mut out[made..made + ready]);
            made += ready;
            let next = self.phase + ready * self.down;
            self.history.advance(next / self.up);
            self.phase = next % self.up;
        }
        (taken, made)
    }

    /// Returns the number of input samples between the windows of the next output and of the one
    /// `outputs` later.
    fn reach(&self, outputs: usize) -> usize {
        self.phase.saturating_add(outputs.saturating_mul(self.down)) / self.up
    }

    /// Returns the number of outputs whose windows are within `there` samples.
    fn ready(&self, there: usize) -> usize {
        let Some(last) = there.checked_sub(self.bank.window) else { return 0 };
        ((last + 1) * self.up - self.phase).div_ceil(self.down)
    }

    /// Returns the number of samples on which an output of [`at`](Self::at) depends.
    #[must_use]
    pub fn window(&self) -> usize {
        self.bank.window
    }

    /// Computes the first outputs of a stream that begins with `x`, without regard to what was
    /// processed before: output 0 belongs to the last sample of the first
    /// [`window`](Self::window).
    ///
    /// # Panics
    /// If `x` is too short for `out`.
    pub fn at(&self, x: &[X], out: &mut [X]) {
        self.filter(0, x, out);
    }

    fn filter(&self, phase: usize, x: &[X], out: &mut [X]) {
        let Self { bank, up, down, .. } = self;
        let x = bytemuck::cast_slice(x);
        let walk = WindowPositions { up: *up, down: *down, phase, row: bank.window * X::PARTS };
        let out = bytemuck::cast_slice_mut(out);
        match (X::PARTS, bank.im.is_empty()) {
            (1, _) => real(walk, &bank.re, x, out),
            (_, true) => pairs(walk, &bank.re, x, out),
            (_, false) => complex(walk, &bank.re, &bank.im, x, out),
        }
    }
}

impl Resampler<Sample> {
    /// Creates a filter with complex taps, otherwise like [`new`](Self::new).
    ///
    /// # Panics
    /// As [`new`](Self::new).
    #[must_use]
    pub fn with_complex_taps(taps: &[Sample], up: usize, down: usize) -> Self {
        let (re, im): (Vec<_>, Vec<_>) = taps.iter().map(|tap| (tap.re, tap.im)).unzip();
        Self::with_bank(Bank::new::<Sample>(&re, &im, up), up, down)
    }
}

/// The steps of windows over samples and of rows over the bank.
#[derive(Clone, Copy)]
struct WindowPositions {
    up: usize,
    down: usize,
    phase: usize,
    /// Floats in a row.
    row: usize,
}

impl WindowPositions {
    /// Returns the start of the row and of the window of each of `outputs`, in floats.
    #[inline(always)]
    fn places(self, parts: usize, outputs: usize) -> impl Iterator<Item = (usize, usize)> {
        let (mut phase, mut start) = (self.phase, 0);
        let (whole, rest) = (self.down / self.up, self.down % self.up);
        (0..outputs).map(move |_| {
            let place = (phase * self.row, start * parts);
            phase += rest;
            let carry = usize::from(phase >= self.up);
            phase -= carry * self.up;
            start += whole + carry;
            place
        })
    }
}

/// Returns the products of two rows, in lanes.
#[inline(always)]
fn products<const FMA: bool>(taps: &[f32], x: &[f32]) -> [f32; LANES] {
    let (mut even, mut odd) = ([0.0; LANES], [0.0; LANES]);
    let (taps, x) = (taps.in_chunks::<LANES>().0, x.in_chunks::<LANES>().0);
    let (taps2, taps1) = taps.in_chunks::<2>();
    let (x2, x1) = x.in_chunks::<2>();
    for ([tap_a, tap_b], [a, b]) in taps2.iter().zip(x2) {
        for lane in 0..LANES {
            even[lane] = madd::<FMA>(tap_a[lane], a[lane], even[lane]);
            odd[lane] = madd::<FMA>(tap_b[lane], b[lane], odd[lane]);
        }
    }
    for (tap, a) in taps1.iter().zip(x1) {
        for lane in 0..LANES {
            even[lane] = madd::<FMA>(tap[lane], a[lane], even[lane]);
        }
    }
    std::array::from_fn(|lane| even[lane] + odd[lane])
}

/// Returns the sums of the even and of the odd lanes.
#[inline(always)]
fn pair(lanes: [f32; LANES]) -> Sample {
    let sum =
        |first: usize| (lanes[first] + lanes[first + 4]) + (lanes[first + 2] + lanes[first + 6]);
    Sample::new(sum(0), sum(1))
}

multiversion! {
    fn real(walk: WindowPositions, taps: &[f32], x: &[f32], out: &mut [f32]) = real_body;
}

#[inline(always)]
fn real_body<const FMA: bool>(walk: WindowPositions, taps: &[f32], x: &[f32], out: &mut [f32]) {
    let places = walk.places(1, out.len());
    for ((row, start), out) in places.zip(out) {
        let lanes = products::<FMA>(&taps[row..row + walk.row], &x[start..start + walk.row]);
        let both = pair(lanes);
        *out = both.re + both.im;
    }
}

multiversion! {
    fn pairs(walk: WindowPositions, taps: &[f32], x: &[f32], out: &mut [f32]) = pairs_body;
}

#[inline(always)]
fn pairs_body<const FMA: bool>(walk: WindowPositions, taps: &[f32], x: &[f32], out: &mut [f32]) {
    let out = out.in_chunks_mut::<2>().0;
    for ((row, start), out) in walk.places(2, out.len()).zip(out) {
        let lanes = products::<FMA>(&taps[row..row + walk.row], &x[start..start + walk.row]);
        let both = pair(lanes);
        *out = [both.re, both.im];
    }
}

multiversion! {
    fn complex(
        walk: WindowPositions, re: &[f32], im: &[f32], x: &[f32], out: &mut [f32]
    ) = complex_body;
}

#[inline(always)]
fn complex_body<const FMA: bool>(
    walk: WindowPositions,
    re: &[f32],
    im: &[f32],
    x: &[f32],
    out: &mut [f32],
) {
    let out = out.in_chunks_mut::<2>().0;
    for ((row, start), out) in walk.places(2, out.len()).zip(out) {
        let x = &x[start..start + walk.row];
        let a = pair(products::<FMA>(&re[row..row + walk.row], x));
        let b = pair(products::<FMA>(&im[row..row + walk.row], x));
        *out = [a.re - b.im, a.im + b.re];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noise(seed: u32, n: usize) -> Vec<f32> {
        let value = |i: u32| (i.wrapping_mul(2_654_435_761).wrapping_add(seed) >> 8) as f32;
        (0..n as u32).map(|i| value(i) / 1.7e7 - 0.5).collect()
    }

    fn complex_noise(seed: u32, n: usize) -> Vec<Sample> {
        let part = |seed| noise(seed, n).into_iter();
        part(seed).zip(part(seed + 77)).map(|(re, im)| Sample::new(re, im)).collect()
    }

    /// Computes the formula of the module documentation, in double precision.
    fn formula(taps: &[Sample], x: &[Sample], up: usize, down: usize, m: usize) -> [f64; 2] {
        let (i, p) = (m * down / up, m * down % up);
        let mut sum = [0.0; 2];
        for k in 0..=i {
            let Some(h) = taps.get(k * up + p) else { break };
            let (h, x) = ([h.re, h.im].map(f64::from), [x[i - k].re, x[i - k].im].map(f64::from));
            sum[0] += h[0] * x[0] - h[1] * x[1];
            sum[1] += h[0] * x[1] + h[1] * x[0];
        }
        sum
    }

    const RATES: [(usize, usize); 7] =
        [(1, 1), (1, 5), (1, 40), (3, 1), (3, 2), (2, 7), (147, 160)];

    #[test]
    fn other_taps_leave_the_outputs_where_they_are_and_keep_the_history() {
        let x: Vec<f32> = (0..400u16).map(|n| f32::from(n % 37) - 18.0).collect();
        let taps = |n: u16| (1..=n).map(|k| 1.0 / f32::from(k)).collect::<Vec<_>>();
        for (up, down, before, after) in [(1, 4, 9, 9), (1, 4, 31, 7), (1, 7, 5, 29), (3, 5, 9, 40)]
        {
            for cut in [0, 1, 101, 102, 103, 104] {
                let mut filter = Resampler::new(&taps(before), up, down);
                let mut y = vec![0.0; 400];
                let (_, first) = filter.process(&x[..cut], &mut y);
                filter.set_taps(&taps(after));
                let (_, more) = filter.process(&x[cut..], &mut y[first..]);
                assert_eq!(first + more, (x.len() * up).div_ceil(down), "{up}/{down} at {cut}");
                let h = taps(after);
                for (m, y) in y[..first + more].iter().enumerate().skip(first) {
                    let (i, p) = (m * down / up, m * down % up);
                    let reaches = h.len().div_ceil(up) + 8;
                    if after > before && i < cut + reaches {
                        continue;
                    }
                    let sum: f32 =
                        (0..=i).filter_map(|k| Some(h.get(k * up + p)? * x[i - k])).sum();
                    assert!((sum - y).abs() < 1e-3, "{up}/{down} at {cut}, output {m}: {y} {sum}");
                }
            }
        }
    }

    #[test]
    fn every_kind_follows_the_formula() {
        let x = complex_noise(1, 1000);
        for (up, down) in RATES {
            for len in [1, 2, 13, 64, 301] {
                let taps = complex_noise(9, len);
                let real: Vec<f32> = taps.iter().map(|tap| tap.re).collect();
                let only_re = |x: &[Sample]| -> Vec<Sample> {
                    x.iter().map(|x| Sample::new(x.re, 0.0)).collect()
                };
                let mut out = vec![Sample::default(); 1000 * up / down];
                let close = |y: Sample, [re, im]: [f64; 2]| {
                    (f64::from(y.re) - re).hypot(f64::from(y.im) - im) < 2e-5
                };
                Resampler::<Sample>::with_complex_taps(&taps, up, down).process(&x, &mut out);
                let good = |m| close(out[m], formula(&taps, &x, up, down, m));
                assert!((0..out.len()).all(good), "complex taps {up}/{down} {len}");
                Resampler::<Sample>::new(&real, up, down).process(&x, &mut out);
                let good = |m| close(out[m], formula(&only_re(&taps), &x, up, down, m));
                assert!((0..out.len()).all(good), "real taps {up}/{down} {len}");
                let mut floats = vec![0.0; out.len()];
                let re: Vec<f32> = x.iter().map(|x| x.re).collect();
                Resampler::<f32>::new(&real, up, down).process(&re, &mut floats);
                let exact = |m| formula(&only_re(&taps), &only_re(&x), up, down, m);
                let good = |m: usize| close(Sample::new(floats[m], 0.0), exact(m));
                assert!((0..out.len()).all(good), "floats {up}/{down} {len}");
            }
        }
    }

    #[test]
    fn chunks_of_any_size_give_the_same_bits() {
        let x = complex_noise(3, 30_000);
        for (up, down) in RATES {
            let filter = Resampler::<Sample>::new(&noise(5, 100), up, down);
            let mut whole = vec![Sample::default(); 30_000 * up / down];
            let (taken, made) = filter.clone().process(&x, &mut whole);
            assert!(made == whole.len() && taken > 30_000 - 2 * down.div_ceil(up) - down);
            let (mut filter, mut out) = (filter, Vec::new());
            let (mut at, mut size) = (0, 1);
            while out.len() < whole.len() {
                size = size * 7 % 1009;
                let mut room = vec![Sample::default(); 1 + size % 53];
                let end = x.len().min(at + size);
                let (taken, made) = filter.process(&x[at..end], &mut room);
                at += taken;
                out.extend_from_slice(&room[..made]);
            }
            assert!(out[..whole.len()] == whole, "{up}/{down}");
        }
    }
}
