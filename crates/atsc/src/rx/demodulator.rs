//! Samples to symbols: carrier, matched filter, timing interpolation, VSB demodulation, level.
//!
//! The signal is `sum of a_k (-j)^k p(t - k T)` with the channel's middle at 0 Hz (see the
//! transmitter's shaper). Filtering with the real pulse `p` at the symbol times and rotating the
//! result by the pilot's phase, which advances by `-pi / 2` per symbol, makes its real part `a_k`.
//! Here samples are rotated first, so that the pilot is at zero frequency, and the pulse is rotated
//! with it. Then a real part costs half of a complex output, and imaginary parts are computed only
//! where a loop or an estimate uses them.

use super::carrier::CarrierLoop;
use super::level::Level;
use super::quantiser::Quantiser;
use super::symbol_block::{BLOCK_SYMBOLS, BlockOrder, Places, SymbolBlock};
use crate::Sample;
use crate::params::{PILOT_OFFSET_HZ, ROLL_OFF, SYMBOL_RATE_HZ};
use millstream_dsp::Complex;
use millstream_dsp::pulse::windowed_rrc;
use millstream_dsp::sampler::{Levelling, OutputPart, Sampler, Times};
use std::f64::consts::TAU;

/// Pulse length on either side, in pairs of symbols, and its Kaiser window: intersymbol
/// interference below -49 dB; of the neighbouring channels' power -51 dB passes (-44 dB at most at
/// any frequency 50 kHz or more beyond the edge).
pub(super) const HALF_SPAN: f64 = 19.5;
const KAISER_BETA: f64 = 1.5;

/// Phases of the interpolation at 6.25 MS/s: the error is -46 dB, and more would not fit into a
/// first-level cache. Faster rates need fewer.
const PHASES_TIMES_RATE: f64 = 192.0 * 6.25e6;
const LEAST_PHASES: f64 = 48.0;

/// The narrowest roll-off of the filter.
const LEAST_ROLL_OFF: f64 = 0.01;

/// The largest relative increase of the symbol interval.
const RATE_MAX: f64 = 1e-3;

/// Converts samples into symbols at nominal levels, a block at a time.
#[derive(Clone, Debug)]
pub struct Demodulator {
    sample_rate_hz: f64,
    offset_hz: f64,
    quantiser: Quantiser,
    filter: Sampler,
    /// Time of the next symbol, samples from the first stored one.
    at: f64,
    /// The current number of samples per symbol.
    step: f64,
    level: Level,
    /// Samples taken so far.
    taken: u64,
}

impl Demodulator {
    /// Creates a demodulator for a signal whose pilot is `offset_hz` from its nominal frequency.
    #[must_use]
    pub fn new(sample_rate_hz: f64, offset_hz: f64) -> Self {
        let step = sample_rate_hz / SYMBOL_RATE_HZ;
        let pair = 2.0 * step;
        let phases = (PHASES_TIMES_RATE / sample_rate_hz).max(LEAST_PHASES).ceil() as u32;
        let step_max = step * (1.0 + RATE_MAX);
        let turn_rad = |hz: f64| TAU * hz / sample_rate_hz;
        let filter = Sampler::new(phases, HALF_SPAN * pair, step_max, |t| {
            let pulse = windowed_rrc(t / pair, roll_off(sample_rate_hz), HALF_SPAN, KAISER_BETA);
            Complex::from_polar(pulse / pair, -turn_rad(PILOT_OFFSET_HZ) * t)
        });
        let carrier = CarrierLoop::new(turn_rad(PILOT_OFFSET_HZ + offset_hz), sample_rate_hz);
        Self {
            sample_rate_hz,
            offset_hz,
            quantiser: Quantiser::new(carrier),
            at: filter.before() as f64,
            filter,
            step,
            level: Level::new(),
            taken: 0,
        }
    }

    /// Takes samples, with a signal to follow unless `held`; returns how many were not finite
    /// numbers and were replaced by zero.
    pub fn push(&mut self, samples: &[Sample], held: bool) -> usize {
        let kept = self.quantiser.kept();
        let spent = (self.at as usize).saturating_sub(self.filter.before()).min(kept);
        self.quantiser.drop_first(spent);
        self.at -= spent as f64;
        self.taken += samples.len() as u64;
        self.quantiser.push(samples, held)
    }

    /// Returns how many samples had been taken before the one that is `symbols` symbols before the
    /// next symbol.
    #[must_use]
    pub fn before(&self, symbols: usize) -> u64 {
        let dropped = self.taken.saturating_sub(self.quantiser.kept() as u64);
        (dropped as f64 + self.at - self.step * symbols as f64).max(0.0) as u64
    }

    /// Computes the next block of symbols; returns false if there are not enough samples yet.
    /// Without a signal to follow (`held`) the level stays as it is.
    pub fn next_block(&mut self, block: &mut SymbolBlock, order: BlockOrder) -> bool {
        let end = self.at + self.step * BLOCK_SYMBOLS as f64;
        let Some(row) = self.quantiser.row() else { return false };
        if end as usize + self.filter.after() > row.0.len() {
            return false;
        }
        let times =
            |first: usize| Times { start: self.at + self.step * first as f64, step: self.step };
        let levelling = self.level.process(order.held, &mut |levelling| {
            self.filter.sample(OutputPart::Real, times(0), row, levelling, &mut block.re)
        });
        // The imaginary part has no pilot, and gets the same gain.
        let levelling = Levelling { offset: 0.0, ..levelling };
        let Places { from, to } = order.imaginary;
        block.im.fill(0.0);
        let im = &mut block.im[from..to];
        self.filter.sample(OutputPart::Imaginary, times(from), row, levelling, im);
        self.at = end;
        true
    }

    /// Samples the following symbols `shift` symbols later, at intervals of `1 + rate` nominal
    /// ones.
    pub fn adjust(&mut self, shift: f64, rate: f64) {
        self.step = self.sample_rate_hz / SYMBOL_RATE_HZ * (1.0 + rate.clamp(-RATE_MAX, RATE_MAX));
        self.at = (self.at + shift * self.step).max(self.filter.before() as f64);
    }

    /// Restarts the pull-in of carrier and level after an interruption of the signal.
    pub fn reacquire(&mut self) {
        self.quantiser.reacquire();
        self.level.reacquire();
    }

    /// Returns the pilot's offset from its nominal frequency.
    #[must_use]
    pub fn pilot_offset_hz(&self) -> f64 {
        self.offset_hz + self.quantiser.carrier().offset_hz()
    }
}

/// Returns the filter's roll-off. Below 6 MS/s the roll-offs of the signal's two sides overlap. Up
/// to half the sample rate a side is stronger than the overlapping one, so the filter ends there.
/// The equaliser compensates for the missing part of the roll-off.
fn roll_off(sample_rate_hz: f64) -> f64 {
    (sample_rate_hz / (SYMBOL_RATE_HZ / 2.0) - 1.0).clamp(LEAST_ROLL_OFF, ROLL_OFF)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_come_only_when_all_their_samples_are_there() {
        let mut demodulator = Demodulator::new(6.25e6, 0.0);
        let mut block = SymbolBlock::default();
        assert!(!demodulator.next_block(&mut block, BlockOrder::default()));
        let mut blocks = 0;
        for _ in 0..100 {
            demodulator.push(&[Sample::new(0.1, 0.0); 61], false);
            blocks += usize::from(demodulator.next_block(&mut block, BlockOrder::default()));
        }
        let expected = 6100.0 / 6.25e6 * SYMBOL_RATE_HZ / BLOCK_SYMBOLS as f64;
        assert!((expected - 2.0..=expected).contains(&(blocks as f64)), "{blocks} of {expected}");
    }
}
