//! Equaliser taps from an impulse response: least mean square error, with or without feedback.
//!
//! With feedback, symbols that are already decided are taken off and only those to come disturb
//! (N. Al-Dhahir and J. M. Cioffi, "MMSE decision-feedback equalizers: finite-length results", IEEE
//! Trans. Inf. Theory 41, 1995). Noise of the real part of a matched-filtered VSB signal is white
//! at the symbol times.

use super::channel::{Channel, EARLY, LATE};
use crate::params::DATA_POWER;
use millstream_dsp::linear::solve_positive;
use std::ops::Range;

/// Feedback taps: as far as an echo can be late for a forward tap that looks back.
pub const FEEDBACK: usize = EARLY + LATE;

/// Most forward taps.
pub const FORWARD_MAX: usize = 192;

/// The least noise designed for, relative to the signal: keeps taps small where there is none.
const LEAST_NOISE: f64 = 1e-5;

/// Room for designing; nothing is allocated later.
#[derive(Clone, Debug)]
pub struct Designer {
    matrix: Vec<f64>,
    solution: Vec<f64>,
}

impl Designer {
    /// A designer.
    pub fn new() -> Self {
        Self { matrix: vec![0.0; FORWARD_MAX * FORWARD_MAX], solution: vec![0.0; FORWARD_MAX] }
    }

    /// Designs forward taps for the symbols in `window` around the one wanted. `doubt` is the share
    /// of the power of earlier symbols that feedback leaves: one without feedback, zero if all
    /// decisions are right. Gives the mean square error to expect (infinite if there is no
    /// solution), after which [`forward`](Self::forward) reads the taps.
    pub fn design(&mut self, channel: &Channel, window: Range<isize>, doubt: f64) -> f64 {
        let n = window.len();
        let matrix = &mut self.matrix[..n * n];
        let solution = &mut self.solution[..n];
        let signal = f64::from(DATA_POWER);
        let noise = channel.noise_power / signal;
        // The products of the response with itself: in full as far as symbols disturb that are
        // wanted or yet to come, and for those before, how much decisions are doubted.
        let edge = |k: isize, l: isize| -> f64 {
            let product = |m: isize| f64::from(channel.at(k - m) * channel.at(l - m));
            let to_come: f64 = (0..=k.min(l) + EARLY as isize).map(product).sum();
            let before: f64 = (-(LATE as isize)..0).map(product).sum();
            to_come + doubt * before
        };
        for i in 0..n {
            let k = window.start + i as isize;
            matrix[i * n] = edge(k, window.start);
            for j in 1..=i {
                let l = window.start + j as isize;
                let newest = (1.0 - doubt) * f64::from(channel.at(k) * channel.at(l));
                matrix[i * n + j] = newest + matrix[(i - 1) * n + j - 1];
            }
            solution[i] = f64::from(channel.at(k));
        }
        let least = LEAST_NOISE * (0..n).map(|i| matrix[i * n + i]).fold(0.0, f64::max);
        (0..n).for_each(|i| matrix[i * n + i] += noise.max(least));
        if !solve_positive(matrix, solution) {
            return f64::INFINITY;
        }
        let gain: f64 =
            (window.clone().zip(&*solution)).map(|(k, tap)| tap * f64::from(channel.at(k))).sum();
        if !(gain > 0.0 && gain < 1.0) {
            return f64::INFINITY;
        }
        // Without the bias that the least error has.
        solution.iter_mut().for_each(|tap| *tap /= gain);
        signal * (1.0 - gain) / gain
    }

    /// The taps of the last design, first that on the oldest symbol.
    pub fn forward(&self, taps: &mut [f32]) {
        for (tap, value) in taps.iter_mut().zip(&self.solution) {
            *tap = *value as f32;
        }
    }
}

/// The feedback taps that belong to forward taps whose first is on the symbol `start`:
/// `feedback[i]` is for the decision [`FEEDBACK`]` - i` symbols ago.
pub fn feedback_taps(
    channel: &Channel,
    forward: &[f32],
    start: isize,
    feedback: &mut [f32; FEEDBACK],
) {
    for (i, out) in feedback.iter_mut().enumerate() {
        let ago = (FEEDBACK - i) as isize;
        let products = forward.iter().zip(start..).map(|(tap, k)| tap * channel.at(k + ago));
        *out = products.sum();
    }
}
