//! The equaliser, trained on the field sync.
//!
//! A real transversal filter at the symbol rate. At every field sync the least-squares solution
//! for its 704 known symbols is found, from sums that remember the syncs before with fading weight.

use super::field_tracker;
use crate::field::{KNOWN_SYMBOLS, SEGMENT_SYNC, field_sync};
use crate::params::{SEGMENT_SYMBOLS, SYNC_SYMBOLS};
use crate::segment::{Segment, SegmentKind};
use millstream_dsp::fir::correlate;
use millstream_dsp::linear::solve_positive;

/// Taps on symbols after and before the one wanted, and altogether.
const AHEAD: usize = 31;
const BEHIND: usize = 64;
const TAPS: usize = AHEAD + 1 + BEHIND;

/// What a field sync counts for at the next one.
const MEMORY: f64 = 0.75;

/// Added to the diagonal, relative to it: keeps taps small where the signal says nothing.
const REGULARISATION: f64 = 1e-3;

/// Weight of a segment in the error power.
const ERROR_WEIGHT: f64 = 1.0 / 256.0;

/// Equalises segments, one segment late.
#[derive(Clone, Debug)]
pub struct Equalizer {
    /// Taps in the order of time: first the oldest symbol.
    taps: [f32; TAPS],
    /// Symbols: `BEHIND` before the segment in hand, that segment, then the one just taken.
    symbols: Vec<f32>,
    /// The segment in hand.
    current: Option<Segment>,
    training: Training,
    error_power: f64,
}

impl Equalizer {
    /// An equaliser that passes symbols unchanged until its first field sync.
    #[must_use]
    pub fn new() -> Self {
        Self {
            taps: straight(),
            symbols: vec![0.0; BEHIND],
            current: None,
            training: Training::new(),
            error_power: f64::NAN,
        }
    }

    /// Mean square error of the segment syncs after equalising; NaN before the first.
    #[must_use]
    pub fn error_power(&self) -> f64 {
        self.error_power
    }

    /// Takes a segment; gives the one before it, equalised.
    pub fn process(&mut self, segment: &Segment) -> Option<Segment> {
        if segment.restart() {
            self.current = None;
            self.symbols.clear();
            self.symbols.resize(BEHIND, 0.0);
            self.training = Training::new();
        }
        self.symbols.extend_from_slice(&segment.symbols);
        // One that is only presumed, because the lock bridges a missed one, teaches nothing.
        let is_there = || segment.restart() || field_tracker::detect(&segment.symbols).is_some();
        if let SegmentKind::FieldSync(parity) = segment.kind()
            && is_there()
        {
            let start = self.symbols.len() - SEGMENT_SYMBOLS;
            // Before a restart there is nothing to look back on.
            let first = if segment.restart() { BEHIND } else { 0 };
            let known = &field_sync(parity)[first..KNOWN_SYMBOLS];
            let from = start + first - BEHIND;
            self.training.add(&self.symbols[from..], known);
            self.training.solve(&mut self.taps);
        }
        let mut current = self.current.replace(*segment)?;
        correlate(&self.taps, &self.symbols, &mut current.symbols);
        self.symbols.drain(..SEGMENT_SYMBOLS);
        self.measure(&current);
        Some(current)
    }

    fn measure(&mut self, segment: &Segment) {
        let errors = segment.symbols.iter().zip(SEGMENT_SYNC).map(|(y, s)| f64::from(y - s));
        let power = errors.map(|e| e * e).sum::<f64>() / SYNC_SYMBOLS as f64;
        if self.error_power.is_nan() {
            self.error_power = power;
        }
        self.error_power += ERROR_WEIGHT * (power - self.error_power);
    }
}

impl Default for Equalizer {
    fn default() -> Self {
        Self::new()
    }
}

fn straight() -> [f32; TAPS] {
    std::array::from_fn(|i| if i == BEHIND { 1.0 } else { 0.0 })
}

/// Sums of the normal equations.
#[derive(Clone, Debug)]
struct Training {
    /// `TAPS` by `TAPS` correlations of the received symbols.
    matrix: Vec<f64>,
    /// Correlations of received with known symbols.
    right: Vec<f64>,
    /// Room for the solution.
    factor: Vec<f64>,
    solution: Vec<f64>,
}

impl Training {
    fn new() -> Self {
        let square = vec![0.0; TAPS * TAPS];
        let row = vec![0.0; TAPS];
        Self { matrix: square.clone(), right: row.clone(), factor: square, solution: row }
    }

    /// Adds known symbols; `x[n..n + TAPS]` are the received symbols that make symbol `n`.
    fn add(&mut self, x: &[f32], known: &[f32]) {
        let count = known.len();
        let product =
            |a: &[f32], b: &[f32]| -> f64 { a.iter().zip(b).map(|(a, b)| f64::from(a * b)).sum() };
        // The first row by summation, the others by moving the window of the sum by one.
        for j in 0..TAPS {
            let mut sum = product(&x[..count], &x[j..]);
            for i in 0..TAPS - j {
                if i > 0 {
                    let (old, new) = (i - 1, i - 1 + count);
                    sum += f64::from(x[new] * x[new + j]) - f64::from(x[old] * x[old + j]);
                }
                let at = (i + j) * TAPS + i;
                self.matrix[at] = MEMORY * self.matrix[at] + sum;
            }
            self.right[j] = MEMORY * self.right[j] + product(known, &x[j..]);
        }
    }

    /// Solves for the taps; leaves them as they are if there is no solution.
    fn solve(&mut self, taps: &mut [f32; TAPS]) {
        self.factor.copy_from_slice(&self.matrix);
        self.solution.copy_from_slice(&self.right);
        let load = REGULARISATION * self.matrix[0];
        for i in 0..TAPS {
            self.factor[i * TAPS + i] += load;
        }
        if solve_positive(&mut self.factor, &mut self.solution) {
            for (tap, value) in taps.iter_mut().zip(&self.solution) {
                *tap = *value as f32;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::field::Parity;
    use crate::params::FIELD_DATA_SEGMENTS;

    /// Levels of a stream of fields, and what each segment is.
    fn stream(segments: usize) -> Vec<(SegmentKind, [f32; SEGMENT_SYMBOLS])> {
        (0..segments)
            .map(|n| {
                let place = n % (FIELD_DATA_SEGMENTS + 1);
                if place == 0 {
                    return (SegmentKind::FieldSync(Parity::First), *field_sync(Parity::First));
                }
                let level = |k: usize| {
                    let hash = ((n * 1000 + k) as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
                    (hash >> 61) as f32 * 2.0 - 7.0
                };
                let sync = |k: usize| SEGMENT_SYNC.get(k).copied();
                let symbols = std::array::from_fn(|k| sync(k).unwrap_or_else(|| level(k)));
                (SegmentKind::Data(place - 1), symbols)
            })
            .collect()
    }

    /// Passes the stream through a channel; gives the error power of data after the first field
    /// sync, relative to the data.
    fn residual_db(echoes: &[(usize, f32)]) -> f64 {
        let sent = stream(40);
        let flat: Vec<f32> = sent.iter().flat_map(|(_, s)| *s).collect();
        let received: Vec<f32> = (0..flat.len())
            .map(|n| echoes.iter().map(|(d, g)| if n >= *d { flat[n - d] * g } else { 0.0 }).sum())
            .collect();
        let mut equalizer = Equalizer::new();
        let mut errors = Vec::new();
        for (n, (kind, _)) in sent.iter().enumerate() {
            let symbols = received[n * SEGMENT_SYMBOLS..][..SEGMENT_SYMBOLS].try_into().unwrap();
            if let Some(out) = equalizer.process(&Segment::new(*kind, n == 0, symbols)) {
                assert_eq!(out.kind(), sent[n - 1].0);
                if n > 2 {
                    errors.extend(out.symbols.iter().zip(sent[n - 1].1).map(|(a, b)| a - b));
                }
            }
        }
        let power = errors.iter().map(|e| f64::from(e * e)).sum::<f64>() / errors.len() as f64;
        10.0 * (power / 21.0).log10()
    }

    #[test]
    fn a_straight_channel_stays_clean() {
        assert!(residual_db(&[(0, 1.0)]) < -45.0, "{}", residual_db(&[(0, 1.0)]));
    }

    #[test]
    fn echoes_within_reach_are_removed() {
        for echo in [(3, 0.5), (11, -0.3), (40, 0.25)] {
            let residual = residual_db(&[(0, 1.0), echo]);
            assert!(residual < -24.0, "echo {echo:?}: {residual:.1} dB");
        }
    }

    #[test]
    fn a_field_sync_that_was_missed_does_not_spoil_the_taps() {
        let mut sent = stream(330);
        // The second field sync drowns in other data.
        sent[FIELD_DATA_SEGMENTS + 1].1 = sent[100].1;
        let mut equalizer = Equalizer::new();
        for (n, (kind, symbols)) in sent.iter().enumerate() {
            let Some(out) = equalizer.process(&Segment::new(*kind, n == 0, symbols)) else {
                continue;
            };
            for (a, b) in out.symbols.iter().zip(sent[n - 1].1) {
                assert!((a - b).abs() < 0.3, "segment {}: {a} for {b}", n - 1);
            }
        }
    }

    #[test]
    fn gain_and_sign_are_corrected() {
        assert!(residual_db(&[(0, -0.7)]) < -45.0);
    }
}
