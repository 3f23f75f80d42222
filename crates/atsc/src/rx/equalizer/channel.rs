//! The channel's impulse response, from the known symbols of a field sync.
//!
//! The first step is least squares over the taps near the middle. The residual is correlated with
//! the known symbols over the whole span, and taps above the noise join the least-squares solution,
//! strongest first (orthogonal matching pursuit, Pati et al. 1993).

use crate::field::{KNOWN_SYMBOLS, Parity, field_sync};
use crate::monitor::taps::{FORWARD_BEFORE, FORWARD_BEHIND};
use crate::params::{DATA_POWER, SYNC_LEVEL};
use millstream_dsp::chunks::Chunks;
use millstream_dsp::fir::correlate;
use millstream_dsp::linear::solve_positive;
use std::ops::Range;
use std::sync::LazyLock;

/// The largest advance of echoes, symbols (12 µs).
pub const EARLY: usize = FORWARD_BEFORE;
/// The largest delay of echoes, symbols (41 µs).
pub const LATE: usize = FORWARD_BEHIND;
const SPAN: usize = EARLY + LATE;

/// Taps on either side of the middle that are always estimated.
pub const NEAR: usize = 16;
const NEAR_TAPS: usize = 2 * NEAR + 1;

/// The most taps of a response.
const TAPS_MAX: usize = 192;

/// The least magnitude of a tap over the noise of the search, in deviations: noise alone reaches it
/// in one search out of a few hundred.
const STANDS_OUT: f32 = 4.5;

/// Deviations from which on a near tap does not count as noise.
const NOT_NOISE: f32 = 2.5;

/// Taps below this level relative to the middle do not matter.
const LEAST_TAP: f32 = 0.012;

/// Rounds of the search.
const ROUNDS: usize = 6;

/// Rows that a least-squares solution needs beyond the number of its taps.
const SPARE_ROWS: usize = 64;

/// An impulse response: `received[n] = sum over k of at(k) * sent[n - k]`, and noise.
#[derive(Clone, Debug)]
pub struct ImpulseResponse {
    taps: Vec<f32>,
    /// Mean square of the residual.
    pub noise_power: f64,
}

impl ImpulseResponse {
    /// Creates a response without taps.
    pub fn new() -> Self {
        Self { taps: vec![0.0; SPAN], noise_power: 0.0 }
    }

    /// Returns the tap for a delay of `k` symbols.
    #[inline]
    pub fn at(&self, k: isize) -> f32 {
        let index = k + EARLY as isize;
        if (0..SPAN as isize).contains(&index) { self.taps[index as usize] } else { 0.0 }
    }

    /// Returns all taps, from a delay of -[`EARLY`] symbols on.
    #[must_use]
    pub fn taps(&self) -> &[f32] {
        &self.taps
    }

    fn set(&mut self, k: isize, value: f32) {
        self.taps[(k + EARLY as isize) as usize] = value;
    }

    /// Returns the ratio of the signal, with its echoes, to the noise.
    pub fn snr(&self) -> f64 {
        let power: f64 = self.taps.iter().map(|tap| f64::from(tap * tap)).sum();
        power * f64::from(DATA_POWER) / self.noise_power
    }

    /// Returns the power of the taps further than `NEAR` from the middle.
    pub fn far_power(&self) -> f64 {
        let near = EARLY - NEAR..EARLY + NEAR + 1;
        let far = self.taps.iter().enumerate().filter(|(i, _)| !near.contains(i));
        far.map(|(_, tap)| f64::from(tap * tap)).sum()
    }

    /// Drops taps that noise alone may have made, when `syncs` field syncs were averaged.
    pub fn drop_noise(&mut self, syncs: u32) {
        let known = f64::from(syncs) * near_rows().len() as f64;
        let variance = self.noise_power / (f64::from(SYNC_LEVEL * SYNC_LEVEL) * known);
        let least = NOT_NOISE * variance.sqrt() as f32;
        self.taps.iter_mut().filter(|tap| tap.abs() < least).for_each(|tap| *tap = 0.0);
    }

    /// Returns the power of the difference from another response, relative to this one's.
    pub fn change_to(&self, other: &Self) -> f64 {
        let square = |x: f32| f64::from(x * x);
        let change: f64 = self.taps.iter().zip(&other.taps).map(|(a, b)| square(b - a)).sum();
        change / self.taps.iter().map(|tap| square(*tap)).sum::<f64>().max(f64::MIN_POSITIVE)
    }

    /// Moves the near taps and the noise of this response towards those of another one.
    pub fn follow(&mut self, other: &Self, weight: f32) {
        for i in 0..SPAN {
            self.taps[i] += weight * (other.taps[i] - self.taps[i]);
        }
        self.noise_power += f64::from(weight) * (other.noise_power - self.noise_power);
    }
}

impl Default for ImpulseResponse {
    fn default() -> Self {
        Self::new()
    }
}

/// Products of the known symbols with themselves, for the near taps of each kind of field sync.
static NEAR_GRAM: LazyLock<[Vec<f64>; 2]> = LazyLock::new(|| {
    let near: Vec<isize> = (-(NEAR as isize)..=NEAR as isize).collect();
    [Parity::First, Parity::Second].map(|parity| {
        let mut gram = vec![0.0; NEAR_TAPS * NEAR_TAPS];
        fill_gram(&field_sync(parity)[..KNOWN_SYMBOLS], &near, &near_rows(), &mut gram);
        gram
    })
});

/// Returns the range of received symbols whose near neighbours are all known.
const fn near_rows() -> Range<usize> {
    NEAR..KNOWN_SYMBOLS - NEAR
}

fn dot(a: &[f32], b: &[f32]) -> f64 {
    let mut sums = [0.0f32; 16];
    let (a16, a1) = a.in_chunks::<16>();
    let (b16, b1) = b.in_chunks::<16>();
    for (a, b) in a16.iter().zip(b16) {
        for lane in 0..16 {
            sums[lane] += a[lane] * b[lane];
        }
    }
    let rest: f32 = a1.iter().zip(b1).map(|(a, b)| a * b).sum();
    f64::from(sums.iter().sum::<f32>() + rest)
}

/// Returns the range of known symbols that reach `rows` at a delay of `k`.
fn delayed(known: &[f32], rows: &Range<usize>, k: isize) -> Range<usize> {
    let move_by = |row: usize| (row as isize - k).clamp(0, known.len() as isize) as usize;
    move_by(rows.start)..move_by(rows.end)
}

/// Fills the lower triangle of the normal equations' matrix; unknown symbols count as zero.
fn fill_gram(known: &[f32], delays: &[isize], rows: &Range<usize>, gram: &mut [f64]) {
    let n = delays.len();
    for i in 0..n {
        let (a, a_start) = overlap(known, rows, delays[i]);
        for j in 0..=i {
            let (b, b_start) = overlap(known, rows, delays[j]);
            let start = a_start.max(b_start);
            let a = &a[(start - a_start).min(a.len())..];
            let b = &b[(start - b_start).min(b.len())..];
            let count = a.len().min(b.len());
            gram[i * n + j] = dot(&a[..count], &b[..count]);
        }
    }
}

/// Memory for the estimate; no allocation follows.
#[derive(Clone, Debug)]
pub struct Estimator {
    gram: Vec<f64>,
    right: Vec<f64>,
    delays: Vec<isize>,
    /// The residual, with `EARLY` values before the field sync and `LATE` behind it.
    residual: Vec<f32>,
    found: Vec<f32>,
}

impl Estimator {
    /// Creates an estimator.
    pub fn new() -> Self {
        Self {
            gram: vec![0.0; TAPS_MAX * TAPS_MAX],
            right: vec![0.0; TAPS_MAX],
            delays: Vec::with_capacity(TAPS_MAX),
            residual: vec![0.0; EARLY + KNOWN_SYMBOLS + LATE],
            found: vec![0.0; SPAN],
        }
    }

    /// Estimates the near taps, from the symbols of a field sync.
    pub fn near(
        &mut self,
        received: &[f32],
        parity: Parity,
        channel: &mut ImpulseResponse,
    ) -> bool {
        self.delays.clear();
        self.delays.extend(-(NEAR as isize)..=NEAR as isize);
        let gram = &NEAR_GRAM[usize::from(parity == Parity::Second)];
        self.gram[..gram.len()].copy_from_slice(gram);
        self.solve(received, parity, near_rows(), channel)
    }

    /// Adds distant taps above the noise to a response that [`near`](Self::near) has just
    /// estimated. The result contains them even if they are too weak to matter.
    pub fn far(&mut self, received: &[f32], parity: Parity, channel: &mut ImpulseResponse) -> bool {
        let mut rows = near_rows();
        for _ in 0..ROUNDS {
            if !self.search(received, parity, &rows, channel) {
                return true;
            }
            let reach = |delay: Option<&isize>| delay.map_or(0, |k| k.unsigned_abs());
            let late = reach(self.delays.iter().max());
            let early = reach(self.delays.iter().min());
            let known = late..KNOWN_SYMBOLS - early;
            // If the span leaves too few rows, symbols before the sync count as noise.
            let least = self.delays.len() + SPARE_ROWS;
            rows = if known.len() > least { known } else { near_rows() };
            let sequence = &field_sync(parity)[..KNOWN_SYMBOLS];
            let n = self.delays.len();
            fill_gram(sequence, &self.delays, &rows, &mut self.gram[..n * n]);
            if !self.solve(received, parity, rows.clone(), channel) {
                return false;
            }
        }
        true
    }

    /// Solves the normal equations for the current delays, and computes the residual.
    fn solve(
        &mut self,
        received: &[f32],
        parity: Parity,
        rows: Range<usize>,
        channel: &mut ImpulseResponse,
    ) -> bool {
        let known = &field_sync(parity)[..KNOWN_SYMBOLS];
        let n = self.delays.len();
        for (right, k) in self.right.iter_mut().zip(&self.delays) {
            let (sent, start) = overlap(known, &rows, *k);
            *right = dot(sent, &received[start..start + sent.len()]);
        }
        let gram = &mut self.gram[..n * n];
        let load = 1e-5 * gram[0];
        (0..n).for_each(|i| gram[i * n + i] += load);
        if !solve_positive(gram, &mut self.right[..n]) {
            return false;
        }
        channel.taps.fill(0.0);
        for (k, value) in self.delays.iter().zip(&self.right) {
            channel.set(*k, *value as f32);
        }
        self.explain(received, parity, &rows, channel);
        let rest = &self.residual[EARLY + rows.start..EARLY + rows.end];
        let freedom = rows.len().saturating_sub(n).max(1);
        channel.noise_power = dot(rest, rest) / freedom as f64;
        true
    }

    /// Subtracts the part that the response explains from the received symbols.
    fn explain(
        &mut self,
        received: &[f32],
        parity: Parity,
        rows: &Range<usize>,
        channel: &ImpulseResponse,
    ) {
        let known = &field_sync(parity)[..KNOWN_SYMBOLS];
        self.residual.fill(0.0);
        self.residual[EARLY + rows.start..EARLY + rows.end]
            .copy_from_slice(&received[rows.clone()]);
        for k in &self.delays {
            let tap = channel.at(*k);
            let (sent, start) = overlap(known, rows, *k);
            let rest = &mut self.residual[EARLY + start..];
            rest.iter_mut().zip(sent).for_each(|(rest, sent)| *rest -= tap * sent);
        }
    }

    /// Adds the delays above the noise; returns false if there are no such delays.
    fn search(
        &mut self,
        received: &[f32],
        parity: Parity,
        rows: &Range<usize>,
        channel: &ImpulseResponse,
    ) -> bool {
        self.explain(received, parity, rows, channel);
        let rest = &self.residual[EARLY + rows.start..EARLY + rows.end];
        let power = (dot(rest, rest) / rows.len() as f64) as f32;
        let known = &field_sync(parity)[..KNOWN_SYMBOLS];
        correlate(known, &self.residual[..KNOWN_SYMBOLS + SPAN - 1], &mut self.found);
        let before = self.delays.len();
        for (i, found) in self.found.iter().enumerate() {
            let k = i as isize - EARLY as isize;
            let count = overlap(known, rows, k).0.len() as f32;
            if count < SPARE_ROWS as f32 || self.delays.len() == TAPS_MAX {
                continue;
            }
            let energy = SYNC_LEVEL * SYNC_LEVEL * count;
            let least = (STANDS_OUT * (power / energy).sqrt()).max(LEAST_TAP);
            if found.abs() > least * energy && !self.delays.contains(&k) {
                self.delays.push(k);
            }
        }
        self.delays.len() > before
    }
}

impl Default for Estimator {
    fn default() -> Self {
        Self::new()
    }
}

/// Returns the known symbols that reach `rows` at a delay of `k`, and the first row that they
/// reach.
fn overlap<'a>(known: &'a [f32], rows: &Range<usize>, k: isize) -> (&'a [f32], usize) {
    let range = delayed(known, rows, k);
    let start = (range.start as isize + k).max(rows.start as isize) as usize;
    (&known[range], start)
}
