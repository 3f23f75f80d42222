//! Symbols to samples: pilot, VSB shaping and resampling in one step.
//!
//! A VSB signal with its channel's middle at 0 Hz is `x(t) = sum of a_k (-j)^k p(t - k T)`, where
//! `p` is a real root-raised-cosine pulse of Nyquist rate `1 / 2T`: even symbols feed the real part
//! and odd symbols, half a pulse period later, the imaginary part. Evaluating `p` at the times of
//! the output samples gives any sample rate.

use crate::Sample;
use crate::params::{DATA_POWER, PILOT_LEVEL, ROLL_OFF, SEGMENT_SYMBOLS, SYMBOL_RATE_HZ};
use millstream_dsp::chunks::Chunks;
use millstream_dsp::polyphase::{Instant, LANES, PolyphaseBank, sum_lanes};
use millstream_dsp::pulse::windowed_rrc;
use millstream_dsp::{multiversion, simd::madd};

/// Pulse length on either side, in pairs of symbols, and its Kaiser window: intersymbol
/// interference stays 52 dB below the signal, and emission below the FCC's mask everywhere.
const HALF_SPAN: f64 = 32.0;
const KAISER_BETA: f64 = 4.0;

/// Phases per pair of symbols: images of the interpolation stay below -100 dB, spread evenly.
const PHASES: u32 = 512;

/// Samples closer than this (in pairs of symbols) to the end of the available symbols wait for more
/// symbols. It is far above the rounding of their times.
const EDGE: f64 = 1e-9;

/// Samples computed together.
const GROUP: usize = 64;

/// The shaping filter and its position between symbols and samples.
#[derive(Clone, Debug)]
pub struct Shaper {
    bank: PolyphaseBank,
    /// Even symbols, signs applied.
    real: Vec<f32>,
    /// Odd symbols, signs applied.
    imaginary: Vec<f32>,
    /// Time of the next sample, in pairs of symbols from the start of the buffers.
    at: f64,
    step: f64,
}

impl Shaper {
    /// Creates a shaper in its initial state, for samples of mean square `rms` squared.
    #[must_use]
    pub fn new(sample_rate_hz: f64, rms: f32) -> Self {
        // With a pulse of unit energy per pair of symbols, each part has the symbols' power at half
        // density; the pilot is at the band edge, where the filter passes half the power.
        let power = DATA_POWER + PILOT_LEVEL * PILOT_LEVEL;
        let gain = f64::from(rms / power.sqrt());
        let bank = PolyphaseBank::new(PHASES, HALF_SPAN, |t| {
            gain / std::f64::consts::SQRT_2 * windowed_rrc(t, ROLL_OFF, HALF_SPAN, KAISER_BETA)
        });
        let history = vec![0.0; bank.taps()];
        Self {
            at: bank.half() as f64,
            bank,
            real: history.clone(),
            imaginary: history,
            step: SYMBOL_RATE_HZ / 2.0 / sample_rate_hz,
        }
    }

    /// Takes the symbols of one segment, without pilot.
    pub fn push(&mut self, segment: &[f32; SEGMENT_SYMBOLS]) {
        // The next sample still needs half a filter before it, and half a pair more for the
        // imaginary part.
        let spent = (self.at as usize).saturating_sub(self.bank.half() + 1);
        self.real.drain(..spent);
        self.imaginary.drain(..spent);
        self.at -= spent as f64;
        // (-j)^k: 1, -j, -1, j.
        for four in segment.in_chunks::<4>().0 {
            let [a, b, c, d] = four.map(|symbol| symbol + PILOT_LEVEL);
            self.real.extend([a, -c]);
            self.imaginary.extend([-b, d]);
        }
    }

    /// Writes as many samples as the symbols taken so far allow; returns their number.
    pub fn produce(&mut self, out: &mut [Sample]) -> usize {
        let end = (self.real.len() - self.bank.half()) as f64 - EDGE;
        let ready = ((end - self.at) / self.step).ceil().max(0.0) as usize;
        let count = ready.min(out.len());
        let span = Span { at: self.at, step: self.step };
        shape(&self.bank, span, [&self.real, &self.imaginary], &mut out[..count]);
        self.at += self.step * count as f64;
        count
    }

    /// Returns the capacity of a buffer in symbols, for tests of bounded memory.
    #[cfg(test)]
    fn buffered(&self) -> usize {
        self.real.len()
    }
}

/// Times of the samples to make.
#[derive(Clone, Copy)]
struct Span {
    at: f64,
    step: f64,
}

multiversion! {
    /// Evaluates both parts at every sample time.
    fn shape(
        bank: &PolyphaseBank,
        span: Span,
        parts: [&[f32]; 2],
        out: &mut [Sample],
    ) = shape_body;
}

#[inline(always)]
fn shape_body<const FMA: bool>(
    bank: &PolyphaseBank,
    span: Span,
    [real, imaginary]: [&[f32]; 2],
    out: &mut [Sample],
) {
    // Sums are stored in lanes and added across afterwards, so that both loops use vectors.
    let mut lanes = [[[0.0; LANES]; 2]; GROUP];
    for (g, group) in out.chunks_mut(GROUP).enumerate() {
        for (i, lanes) in lanes[..group.len()].iter_mut().enumerate() {
            let at = span.at + span.step * (g * GROUP + i) as f64;
            // The imaginary part's pulses are half a pair later.
            lanes[0] = evaluate::<FMA>(bank, real, Instant::new(at));
            lanes[1] = evaluate::<FMA>(bank, imaginary, Instant::new(at - 0.5));
        }
        for (sample, [re, im]) in group.iter_mut().zip(&lanes) {
            *sample = Sample::new(sum_lanes(re), sum_lanes(im));
        }
    }
}

/// Returns the filter output at a time, in lanes that the caller must add up.
#[inline(always)]
fn evaluate<const FMA: bool>(bank: &PolyphaseBank, symbols: &[f32], at: Instant) -> [f32; LANES] {
    let (row, fraction) = bank.row(at);
    let mut sums = [0.0; LANES];
    for ([taps, slopes], x) in row.iter().zip(bank.window(symbols, at)) {
        for lane in 0..LANES {
            let tap = madd::<FMA>(fraction, slopes[lane], taps[lane]);
            sums[lane] = madd::<FMA>(tap, x[lane], sums[lane]);
        }
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn symbols_come_out_in_any_chunks_alike() {
        let segment: [f32; SEGMENT_SYMBOLS] = std::array::from_fn(|i| ((i * 37) % 15) as f32 - 7.0);
        let run = |chunk: usize| {
            let mut shaper = Shaper::new(6.25e6, 0.2);
            let mut out = vec![Sample::default(); 5000];
            let mut done = 0;
            while done < out.len() {
                let end = (done + chunk).min(out.len());
                done += shaper.produce(&mut out[done..end]);
                if done < end {
                    shaper.push(&segment);
                }
            }
            out
        };
        let whole = run(5000);
        for chunk in [1, 7, 1000] {
            let parts = run(chunk);
            let worst = whole.iter().zip(&parts).map(|(a, b)| (a - b).norm()).fold(0.0, f32::max);
            assert!(worst < 1e-6, "chunks of {chunk}: {worst}");
        }
    }

    #[test]
    fn buffers_stay_bounded() {
        let mut shaper = Shaper::new(200e6, 0.2);
        let mut out = vec![Sample::default(); 4096];
        for _ in 0..100 {
            while shaper.produce(&mut out) == out.len() {}
            shaper.push(&[1.0; SEGMENT_SYMBOLS]);
            assert!(shaper.buffered() < SEGMENT_SYMBOLS + shaper.bank.taps());
        }
    }

    #[test]
    fn the_fast_copy_agrees_with_the_plain_one() {
        let shaper = Shaper::new(6.25e6, 0.2);
        let part: Vec<f32> = (0..500).map(|i| ((i * 37) % 15) as f32 - 7.0).collect();
        let span = Span { at: 60.3, step: shaper.step };
        let mut fast = vec![Sample::default(); 300];
        let mut plain = fast.clone();
        shape(&shaper.bank, span, [&part, &part], &mut fast);
        shape_body::<false>(&shaper.bank, span, [&part, &part], &mut plain);
        let worst = fast.iter().zip(&plain).map(|(a, b)| (a - b).norm()).fold(0.0, f32::max);
        // Fused multiply-add rounds once instead of twice: a few units of the largest sum.
        assert!(worst < 1e-6, "{worst}");
    }

    #[test]
    fn samples_that_fall_on_the_edge_of_what_is_there_wait_for_more() {
        // Rates in simple ratios to the symbol rate reach the edge repeatedly, each time with
        // another rounding error.
        let mut out = vec![Sample::default(); 4096];
        for (p, q) in (2..8).map(|q| (q + 1, q)) {
            let mut shaper = Shaper::new(SYMBOL_RATE_HZ * f64::from(p) / f64::from(q), 0.2);
            for n in 0..200 {
                let count = 1 + (n * 977) % out.len();
                while shaper.produce(&mut out[..count]) == count {}
                shaper.push(&[1.0; SEGMENT_SYMBOLS]);
            }
        }
    }
}
