//! Samples to symbols: matched filter, timing interpolation, VSB demodulation, carrier, level.
//!
//! The signal is `sum of a_k (-j)^k p(t - k T)` with the channel's middle at 0 Hz (see the
//! transmitter's shaper). Filtering with the real pulse `p` at the symbol times and turning the
//! result by the pilot's phase, which advances by `-pi / 2` per symbol, makes its real part `a_k`.

use super::carrier::{BLOCK_SYMBOLS, Carrier, SymbolBlock};
use super::level::Level;
use crate::Sample;
use crate::params::{PILOT_OFFSET_HZ, ROLL_OFF, SYMBOL_RATE_HZ};
use millstream_dsp::planar::Mixer;
use millstream_dsp::polyphase::{Instant, LANES, PolyphaseBank, sum_lanes};
use millstream_dsp::pulse::windowed_rrc;
use millstream_dsp::{multiversion, simd::madd};
use std::f64::consts::TAU;

/// Pulse length on either side, in pairs of symbols, and its Kaiser window: intersymbol
/// interference below -49 dB; of the neighbouring channels' power -51 dB passes (-44 dB at most at
/// any frequency 50 kHz or more beyond the edge).
const HALF_SPAN: f64 = 20.0;
const KAISER_BETA: f64 = 1.5;

/// Phases of the interpolation at 6.25 MS/s (error below -70 dB); faster rates need fewer.
const PHASES_TIMES_RATE: f64 = 64.0 * 6.25e6;

/// Turns samples into levelled symbols, a block at a time.
#[derive(Clone, Debug)]
pub struct Demodulator {
    sample_rate_hz: f64,
    offset_hz: f64,
    mixer: Mixer,
    bank: PolyphaseBank,
    re: Vec<f32>,
    im: Vec<f32>,
    /// Time of the next symbol in samples from the start of the rows.
    at: f64,
    /// Samples per symbol now.
    step: f64,
    carrier: Carrier,
    level: Level,
}

impl Demodulator {
    /// A demodulator for a signal whose pilot is `offset_hz` from its place.
    #[must_use]
    pub fn new(sample_rate_hz: f64, offset_hz: f64) -> Self {
        let pair = 2.0 * sample_rate_hz / SYMBOL_RATE_HZ;
        let phases = (PHASES_TIMES_RATE / sample_rate_hz).ceil().max(16.0) as u32;
        let bank = PolyphaseBank::new(phases, HALF_SPAN * pair, |t| {
            windowed_rrc(t / pair, ROLL_OFF, HALF_SPAN, KAISER_BETA) / pair
        });
        Self {
            sample_rate_hz,
            offset_hz,
            mixer: Mixer::new(-TAU * offset_hz / sample_rate_hz),
            at: bank.half() as f64,
            bank,
            re: Vec::new(),
            im: Vec::new(),
            step: sample_rate_hz / SYMBOL_RATE_HZ,
            carrier: Carrier::new(TAU * PILOT_OFFSET_HZ / SYMBOL_RATE_HZ, SYMBOL_RATE_HZ),
            level: Level::new(),
        }
    }

    /// Takes samples; returns how many were not finite numbers and became zero.
    pub fn push(&mut self, samples: &[Sample]) -> usize {
        let spent = (self.at as usize).saturating_sub(self.bank.half()).min(self.re.len());
        self.re.drain(..spent);
        self.im.drain(..spent);
        self.at -= spent as f64;
        self.mixer.mix(samples, &mut self.re, &mut self.im)
    }

    /// Makes the next block of symbols; false if there are not enough samples for it yet.
    pub fn next_block(&mut self, block: &mut SymbolBlock) -> bool {
        let last = self.at + self.step * BLOCK_SYMBOLS as f64;
        if last as usize + self.bank.half() >= self.re.len() {
            return false;
        }
        let times = (self.at, self.step);
        filter(&self.bank, times, &self.re, &self.im, block);
        self.at = last;
        let (mean, _) = self.carrier.process(block);
        self.level.process(block, mean);
        true
    }

    /// Takes the following symbols `shift` symbols later, at intervals of `1 + rate` nominal ones.
    pub fn adjust(&mut self, shift: f64, rate: f64) {
        self.step = self.sample_rate_hz / SYMBOL_RATE_HZ * (1.0 + rate);
        self.at = (self.at + shift * self.step).max(self.bank.half() as f64);
        self.carrier.set_interval(1.0 + rate);
        self.carrier.skip(shift);
    }

    /// Lets carrier and level follow quickly again after a break in the signal, and takes symbols
    /// at nominal intervals: from there the search measures the clock's error.
    pub fn reacquire(&mut self) {
        self.adjust(0.0, 0.0);
        self.carrier.reacquire();
        self.level.reacquire();
    }

    /// The pilot's offset from its place.
    #[must_use]
    pub fn pilot_offset_hz(&self) -> f64 {
        let symbol_rate_hz = self.sample_rate_hz / self.step;
        let pilot_hz = self.carrier.turn_rad() / TAU * symbol_rate_hz;
        self.offset_hz + pilot_hz - PILOT_OFFSET_HZ
    }

    /// Pilot amplitude over the data's root mean square; nominally 1.25 / 4.58 = 0.27.
    #[must_use]
    pub fn pilot_ratio(&self) -> f32 {
        self.level.pilot() / self.level.data_rms().max(f32::MIN_POSITIVE)
    }
}

multiversion! {
    /// Evaluates the matched filter at the symbol times.
    fn filter(
        bank: &PolyphaseBank,
        times: (f64, f64),
        re: &[f32],
        im: &[f32],
        out: &mut SymbolBlock,
    ) = filter_body;
}

#[inline(always)]
fn filter_body<const FMA: bool>(
    bank: &PolyphaseBank,
    (start, step): (f64, f64),
    re: &[f32],
    im: &[f32],
    out: &mut SymbolBlock,
) {
    // Sums are stored in lanes and added across afterwards, which keeps both loops in vectors.
    let mut lanes_re = [[0.0; LANES]; BLOCK_SYMBOLS];
    let mut lanes_im = [[0.0; LANES]; BLOCK_SYMBOLS];
    for k in 0..BLOCK_SYMBOLS {
        let at = Instant::new(start + step * k as f64);
        let (row, fraction) = bank.row(at);
        let (re, im) = (bank.window(re, at), bank.window(im, at));
        let (mut sum_re, mut sum_im) = ([0.0; LANES], [0.0; LANES]);
        for (([taps, slopes], re), im) in row.iter().zip(re).zip(im) {
            for lane in 0..LANES {
                let tap = madd::<FMA>(fraction, slopes[lane], taps[lane]);
                sum_re[lane] = madd::<FMA>(tap, re[lane], sum_re[lane]);
                sum_im[lane] = madd::<FMA>(tap, im[lane], sum_im[lane]);
            }
        }
        (lanes_re[k], lanes_im[k]) = (sum_re, sum_im);
    }
    for k in 0..BLOCK_SYMBOLS {
        (out.re[k], out.im[k]) = (sum_lanes(&lanes_re[k]), sum_lanes(&lanes_im[k]));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fast_copy_agrees_with_the_plain_one() {
        let demodulator = Demodulator::new(6.25e6, 0.0);
        let row: Vec<f32> = (0..400).map(|i| ((i * 37) % 15) as f32 / 7.0 - 1.0).collect();
        let mut fast = SymbolBlock::default();
        let mut plain = fast;
        let bank = &demodulator.bank;
        let times = (100.7, demodulator.step);
        filter(bank, times, &row, &row[1..], &mut fast);
        filter_body::<false>(bank, times, &row, &row[1..], &mut plain);
        let rows = fast.re.iter().chain(&fast.im);
        let pairs = rows.zip(plain.re.iter().chain(&plain.im));
        let worst = pairs.map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        // Fused multiply-add rounds once instead of twice: a few units of the largest sum.
        assert!(worst < 2e-6, "{worst}");
    }

    #[test]
    fn blocks_come_only_when_all_their_samples_are_there() {
        let mut demodulator = Demodulator::new(6.25e6, 0.0);
        let mut block = SymbolBlock::default();
        assert!(!demodulator.next_block(&mut block));
        let mut blocks = 0;
        for _ in 0..100 {
            demodulator.push(&[Sample::new(0.1, 0.0); 61]);
            blocks += usize::from(demodulator.next_block(&mut block));
        }
        let expected = 6100.0 / 6.25e6 * SYMBOL_RATE_HZ / BLOCK_SYMBOLS as f64;
        assert!((expected - 2.0..=expected).contains(&(blocks as f64)), "{blocks} of {expected}");
    }
}
