//! Equaliser taps from an impulse response: least mean square error, with or without feedback.
//!
//! With feedback, symbols already decided are subtracted, and only later ones disturb (N. Al-Dhahir
//! and J. M. Cioffi, "MMSE decision-feedback equalizers: finite-length results", IEEE Trans. Inf.
//! Theory 41, 1995). Noise of the real part of a matched-filtered VSB signal is white at the symbol
//! times.

use super::applied_taps::GROUP;
use super::channel::{EARLY, ImpulseResponse, LATE};
use super::forward::{FORWARD_MAX, ForwardFilter, GROUPS_MAX};
pub(super) use crate::monitor::taps::FEEDBACK;
use crate::params::DATA_POWER;
use millstream_dsp::chunks::Chunks;
use millstream_dsp::linear::solve_positive;
use std::ops::Range;

/// Positions of forward taps, symbols relative to the wanted one.
const REACH: Range<isize> = -(EARLY as isize)..LATE as isize;
const REACH_TAPS: usize = EARLY + LATE;

/// The least assumed noise, relative to the signal: it keeps taps small without noise.
const LEAST_NOISE: f64 = 1e-5;

/// Steps of the search for groups of taps that matter.
const SEARCH_STEPS: usize = 24;

/// Share of the power of all taps from which on a group matters.
const LEAST_GROUP: f64 = 1e-4;

/// Memory for the design; no allocation follows.
#[derive(Clone, Debug)]
pub struct Designer {
    /// Mean products of received symbols, for the window of the last [`fill`](Self::fill).
    products: Vec<f64>,
    window: Range<isize>,
    factor: Vec<f64>,
    solution: Vec<f64>,
    search: [Vec<f64>; 4],
}

impl Designer {
    /// Creates a designer.
    pub fn new() -> Self {
        Self {
            products: vec![0.0; REACH_TAPS * REACH_TAPS],
            window: 0..0,
            factor: vec![0.0; FORWARD_MAX * FORWARD_MAX],
            solution: vec![0.0; FORWARD_MAX],
            search: std::array::from_fn(|_| vec![0.0; REACH_TAPS]),
        }
    }

    /// Designs one group of taps from `start` on. `doubt` is the share of the power of earlier
    /// symbols that feedback leaves: one without feedback, zero if all decisions are right. Returns
    /// the expected mean square error; if there is no solution it returns infinity and leaves
    /// `forward` as it was.
    pub fn short(
        &mut self,
        channel: &ImpulseResponse,
        start: isize,
        doubt: f64,
        forward: &mut ForwardFilter,
    ) -> f64 {
        self.fill(channel, start..start + GROUP as isize, doubt);
        self.solve(channel, &[start], forward)
    }

    /// Designs groups of taps wherever they matter, otherwise like [`short`](Self::short).
    pub fn long(
        &mut self,
        channel: &ImpulseResponse,
        doubt: f64,
        forward: &mut ForwardFilter,
    ) -> f64 {
        self.fill(channel, REACH, doubt);
        let mut starts = [0; GROUPS_MAX];
        let count = self.search(channel, &mut starts);
        self.solve(channel, &starts[..count], forward)
    }

    /// Fills the lower triangle of the products. Products of the response with itself count in full
    /// for the wanted and later symbols, and in part for earlier ones.
    fn fill(&mut self, channel: &ImpulseResponse, window: Range<isize>, doubt: f64) {
        let n = window.len();
        let edge = |k: isize, l: isize| -> f64 {
            let (k, l) = (k.min(l), k.max(l));
            let taps = channel.taps();
            // Both sums use as many taps before and behind as the earlier position has.
            let [at_k, at_l] = [k, l].map(|k| (k + EARLY as isize + 1) as usize);
            let to_come = dot_taps(&taps[..at_k], &taps[at_l - at_k..at_l]);
            let before = dot_taps(&taps[at_k..], &taps[at_l..]);
            to_come + doubt * before
        };
        for (i, k) in window.clone().enumerate() {
            self.products[i * n] = edge(k, window.start);
            for (j, l) in window.clone().enumerate().take(i + 1).skip(1) {
                let newest = (1.0 - doubt) * f64::from(channel.at(k) * channel.at(l));
                self.products[i * n + j] = newest + self.products[(i - 1) * n + j - 1];
            }
        }
        let most = (0..n).map(|i| self.products[i * n + i]).fold(0.0, f64::max);
        let noise = (channel.noise_power / f64::from(DATA_POWER)).max(LEAST_NOISE * most);
        (0..n).for_each(|i| self.products[i * n + i] += noise);
        self.window = window;
    }

    /// Finds the groups that matter by conjugate gradients (Hestenes and Stiefel 1952) over the
    /// whole window; returns their number.
    fn search(&mut self, channel: &ImpulseResponse, starts: &mut [isize; GROUPS_MAX]) -> usize {
        let n = self.window.len();
        let products = &self.products;
        let [taps, rest, direction, image] = &mut self.search;
        for (i, k) in self.window.clone().enumerate() {
            (taps[i], rest[i]) = (0.0, f64::from(channel.at(k)));
            direction[i] = rest[i];
        }
        let mut power = dot(rest, rest);
        for _ in 0..SEARCH_STEPS {
            image.fill(0.0);
            for i in 0..n {
                let row = &products[i * n..i * n + i];
                image[i] += products[i * n + i] * direction[i] + dot(row, direction);
                let scale = direction[i];
                image.iter_mut().zip(row).for_each(|(image, p)| *image += scale * p);
            }
            let step = power / dot(direction, image).max(f64::MIN_POSITIVE);
            for i in 0..n {
                taps[i] += step * direction[i];
                rest[i] -= step * image[i];
            }
            let before = std::mem::replace(&mut power, dot(rest, rest));
            let keep = power / before.max(f64::MIN_POSITIVE);
            direction.iter_mut().zip(&*rest).for_each(|(d, r)| *d = r + keep * *d);
        }
        let mut groups = [(0.0, 0); REACH_TAPS / GROUP];
        for (g, (group, taps)) in groups.iter_mut().zip(taps.in_chunks::<GROUP>().0).enumerate() {
            *group = (dot(taps, taps), g);
        }
        let least = LEAST_GROUP * groups.iter().map(|group| group.0).sum::<f64>();
        groups.sort_unstable_by(|a, b| b.0.total_cmp(&a.0));
        let best = &mut groups[..GROUPS_MAX];
        let count = best.iter().take_while(|group| group.0 > least).count();
        best[..count].sort_unstable_by_key(|group| group.1);
        for (start, (_, g)) in starts.iter_mut().zip(&best[..count]) {
            *start = self.window.start + (g * GROUP) as isize;
        }
        count
    }

    /// Solves for the taps of groups within the window.
    fn solve(
        &mut self,
        channel: &ImpulseResponse,
        starts: &[isize],
        forward: &mut ForwardFilter,
    ) -> f64 {
        let n = starts.len() * GROUP;
        let wide = self.window.len();
        let on = |i: usize| starts[i / GROUP] + (i % GROUP) as isize;
        let row = |i: usize| (on(i) - self.window.start) as usize;
        for i in 0..n {
            for j in 0..=i {
                self.factor[i * n + j] = self.products[row(i) * wide + row(j)];
            }
            self.solution[i] = f64::from(channel.at(on(i)));
        }
        let solution = &mut self.solution[..n];
        if n == 0 || !solve_positive(&mut self.factor[..n * n], solution) {
            return f64::INFINITY;
        }
        let gain: f64 =
            solution.iter().enumerate().map(|(i, tap)| tap * f64::from(channel.at(on(i)))).sum();
        if !(gain > 0.0 && gain < 1.0) {
            return f64::INFINITY;
        }
        // Removes the bias of the least-mean-square solution.
        forward.set(starts, solution.iter().map(|tap| (tap / gain) as f32));
        f64::from(DATA_POWER) * (1.0 - gain) / gain
    }
}

/// Returns the scalar product over the common length.
fn dot(a: &[f64], b: &[f64]) -> f64 {
    sum_over(a, b, |a, b| a * b)
}

/// Returns [`dot`] of 32-bit floats.
fn dot_taps(a: &[f32], b: &[f32]) -> f64 {
    sum_over(a, b, |a, b| f64::from(a * b))
}

/// Returns the sum over the common length, in eight partial sums.
#[inline(always)]
fn sum_over<T: Copy>(a: &[T], b: &[T], product: impl Fn(T, T) -> f64) -> f64 {
    let n = a.len().min(b.len());
    let (a8, a1) = a[..n].in_chunks::<8>();
    let (b8, b1) = b[..n].in_chunks::<8>();
    let mut sums = [0.0; 8];
    for (a, b) in a8.iter().zip(b8) {
        for lane in 0..8 {
            sums[lane] += product(a[lane], b[lane]);
        }
    }
    sums.iter().sum::<f64>() + a1.iter().zip(b1).map(|(a, b)| product(*a, *b)).sum::<f64>()
}

/// Computes the feedback taps that belong to forward taps: `feedback[i]` is for the decision
/// [`FEEDBACK`]` - i` symbols ago.
pub fn feedback_taps(
    channel: &ImpulseResponse,
    forward: &ForwardFilter,
    feedback: &mut [f32; FEEDBACK],
) {
    feedback.fill(0.0);
    for (k, tap) in forward.taps() {
        for (i, out) in feedback.iter_mut().enumerate() {
            *out += tap * channel.at(k + (FEEDBACK - i) as isize);
        }
    }
}
