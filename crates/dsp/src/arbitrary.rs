//! A resampler for any ratio: a bank of filter phases with linear interpolation between them.
//!
//! Time is counted in 2⁻⁶⁴ samples, so no error accumulates over hours.

use crate::chunks::Chunks;
use crate::history::History;
use crate::polyphase::{Instant, LANES, PolyphaseBank, TapPair, sum_lanes};
use crate::simd::madd;
use crate::window::kaiser;
use crate::{Sample, multiversion};
use std::f64::consts::PI;

/// Phases of the bank: with linear interpolation images stay 80 dB down.
const PHASES: u32 = 128;

/// Beta of the Kaiser window, which gives the attenuation of aliases.
const BETA: f64 = 8.0;

/// Zero crossings of the pulse on either side, at the lower of the two rates.
const CROSSINGS: f64 = 16.0;

/// Pass band, as a share of half the lower rate.
const PASS: f64 = 0.9;

/// One sample, in units of time.
const SAMPLE: u128 = 1 << 64;

/// The lowest and the highest ratio.
pub const RATIOS: std::ops::RangeInclusive<f64> = 1.0 / 256.0..=256.0;

/// Resamples real rows by any ratio.
#[derive(Clone, Debug)]
pub struct ArbitraryResampler {
    bank: PolyphaseBank,
    /// One history for each row: real parts and imaginary parts.
    rows: Vec<History<f32>>,
    step: u128,
    /// Time of the next output in its window, below a sample.
    fraction: u64,
}

impl ArbitraryResampler {
    /// Creates a resampler of `rows` rows (1 for real samples, 2 for complex ones) that makes
    /// `ratio` samples out of one.
    ///
    /// # Panics
    /// If the ratio is outside [`RATIOS`] or there are no rows.
    #[must_use]
    pub fn new(ratio: f64, rows: usize) -> Self {
        assert!(RATIOS.contains(&ratio) && rows > 0, "a ratio of {ratio} for {rows} rows");
        // Cut-off of the pulse, in cycles per input sample, times two.
        let scale = ratio.min(1.0);
        let half_span = CROSSINGS / scale;
        let edge = (1.0 + PASS) / 2.0 * scale;
        let pulse = |t: f64| {
            let x = PI * edge * t;
            let sinc = if x.abs() < 1e-9 { 1.0 } else { x.sin() / x };
            edge * sinc * kaiser(t / half_span, BETA)
        };
        let bank = PolyphaseBank::new(PHASES, half_span, pulse);
        // The window reaches half its length beyond the output, which is the delay.
        let history = History::new(bank.taps());
        Self { rows: vec![history; rows], bank, step: step(ratio), fraction: 0 }
    }

    /// Changes the ratio slightly, without a jump in time; the filter stays.
    ///
    /// # Panics
    /// If the ratio is outside [`RATIOS`].
    pub fn set_ratio(&mut self, ratio: f64) {
        assert!(RATIOS.contains(&ratio), "a ratio of {ratio}");
        self.step = step(ratio);
    }

    /// Returns the delay in input samples.
    #[must_use]
    pub fn delay(&self) -> usize {
        self.bank.half()
    }

    /// Resamples as many real samples as fit; returns how many it took and made.
    pub fn process_real(&mut self, input: &[f32], out: &mut [f32]) -> (usize, usize) {
        self.walk(input.len(), out.len(), |resampler, from, to, wanted| {
            let taken = resampler.rows[0].fill(&input[from..], wanted);
            let (x, bank) = (resampler.rows[0].slice(), &resampler.bank);
            let ready = resampler.ready(x.len()).min(out.len() - to);
            for (n, out) in out[to..to + ready].iter_mut().enumerate() {
                let (row, fraction, start) = resampler.place(bank, n);
                *out = interpolate(row, fraction, &x[start..start + bank.taps()]);
            }
            (taken, ready)
        })
    }

    /// Resamples as many complex samples as fit; returns how many it took and made.
    pub fn process(&mut self, input: &[Sample], out: &mut [Sample]) -> (usize, usize) {
        const SPLIT: usize = 512;
        self.walk(input.len(), out.len(), |resampler, from, to, wanted| {
            let input = &input[from..input.len().min(from + SPLIT.min(wanted))];
            let (mut re, mut im) = ([0.0; SPLIT], [0.0; SPLIT]);
            for ((x, re), im) in input.iter().zip(&mut re).zip(&mut im) {
                (*re, *im) = (x.re, x.im);
            }
            let taken = resampler.rows[0].fill(&re[..input.len()], wanted);
            resampler.rows[1].fill(&im[..input.len()], wanted);
            let (re, im) = (resampler.rows[0].slice(), resampler.rows[1].slice());
            let bank = &resampler.bank;
            let ready = resampler.ready(re.len()).min(out.len() - to);
            for (n, out) in out[to..to + ready].iter_mut().enumerate() {
                let (row, fraction, start) = resampler.place(bank, n);
                let window = start..start + bank.taps();
                let i = interpolate(row, fraction, &re[window.clone()]);
                *out = Sample::new(i, interpolate(row, fraction, &im[window]));
            }
            (taken, ready)
        })
    }

    /// Repeats `some(self, taken, made, wanted)`, which takes and makes samples, until there is no
    /// progress.
    fn walk(
        &mut self,
        input: usize,
        room: usize,
        mut some: impl FnMut(&mut Self, usize, usize, usize) -> (usize, usize),
    ) -> (usize, usize) {
        let (mut taken, mut made) = (0, 0);
        while made < room {
            let ahead = u128::from(self.fraction) + self.step * (room - made - 1) as u128;
            let wanted = ((ahead >> 64) as usize).saturating_add(self.bank.taps());
            let (more, ready) = some(self, taken, made, wanted);
            taken += more;
            made += ready;
            let next = u128::from(self.fraction) + self.step * ready as u128;
            self.fraction = next as u64;
            for row in &mut self.rows {
                row.advance((next >> 64) as usize);
            }
            if ready == 0 && (more == 0 || taken == input) {
                break;
            }
        }
        (taken, made)
    }

    /// Returns the number of outputs whose windows are within `there` samples.
    fn ready(&self, there: usize) -> usize {
        let Some(last) = there.checked_sub(self.bank.taps()) else { return 0 };
        let span = (last as u128 + 1) * SAMPLE - u128::from(self.fraction);
        span.div_ceil(self.step) as usize
    }

    /// Returns the taps of output `n`, their position towards the next phase, and the start of its
    /// window.
    #[inline(always)]
    fn place<'a>(&self, bank: &'a PolyphaseBank, n: usize) -> (&'a [TapPair], f32, usize) {
        let time = u128::from(self.fraction) + self.step * n as u128;
        let (row, fraction) = bank.row(Instant(u64::from((time as u64 >> 32) as u32)));
        (row, fraction, (time >> 64) as usize)
    }
}

/// Returns the number of input samples for one output, in units of time.
fn step(ratio: f64) -> u128 {
    // Exact for whole steps; otherwise to the 53 bits of the quotient.
    ((1.0 / ratio) * SAMPLE as f64) as u128
}

multiversion! {
    fn interpolate(row: &[TapPair], fraction: f32, x: &[f32]) -> f32 = interpolate_body;
}

#[inline(always)]
fn interpolate_body<const FMA: bool>(row: &[TapPair], fraction: f32, x: &[f32]) -> f32 {
    let (mut taps_sum, mut slopes_sum) = ([0.0; LANES], [0.0; LANES]);
    for ([taps, slopes], x) in row.iter().zip(x.in_chunks::<LANES>().0) {
        for lane in 0..LANES {
            taps_sum[lane] = madd::<FMA>(taps[lane], x[lane], taps_sum[lane]);
            slopes_sum[lane] = madd::<FMA>(slopes[lane], x[lane], slopes_sum[lane]);
        }
    }
    madd::<FMA>(fraction, sum_lanes(&slopes_sum), sum_lanes(&taps_sum))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tone(frequency: f64, n: f64) -> [f64; 2] {
        let (sin, cos) = (2.0 * PI * (frequency * n).rem_euclid(1.0)).sin_cos();
        [cos, sin]
    }

    #[test]
    fn a_tone_comes_out_where_it_belongs() {
        for ratio in [0.013, 0.3333, 0.999_9, 1.0, 1.0884, 3.7, 40.0] {
            let frequency = 0.37 * f64::min(ratio, 1.0);
            let x: Vec<Sample> = (0..60_000)
                .map(|n| tone(frequency, f64::from(n)).map(|x| x as f32))
                .map(|[re, im]| Sample::new(re, im))
                .collect();
            let mut resampler = ArbitraryResampler::new(ratio, 2);
            let delay = resampler.delay() as f64;
            let mut out = vec![Sample::default(); (50_000.0 * ratio) as usize];
            let (_, made) = resampler.process(&x, &mut out);
            assert_eq!(made, out.len());
            let settled = (2.0 * delay * ratio) as usize + 2;
            for (m, y) in out.iter().enumerate().skip(settled) {
                let [re, im] = tone(frequency, m as f64 / ratio - delay);
                let error = (f64::from(y.re) - re).hypot(f64::from(y.im) - im);
                assert!(error < 1e-3, "{ratio} {m}: {error}");
            }
        }
    }

    #[test]
    fn real_rows_are_resampled_alike_in_chunks_of_any_size() {
        let x: Vec<Sample> =
            (0..9000).map(|n| Sample::new((n as f32 * 0.37).sin(), n as f32)).collect();
        let re: Vec<f32> = x.iter().map(|x| x.re).collect();
        let mut whole = vec![Sample::default(); 8000];
        ArbitraryResampler::new(1.1, 2).process(&x, &mut whole);
        let mut real = ArbitraryResampler::new(1.1, 1);
        let (mut out, mut at) = (Vec::new(), 0);
        while out.len() < 8000 {
            let mut room = [0.0; 37];
            let (taken, made) = real.process_real(&re[at..re.len().min(at + 91)], &mut room);
            at += taken;
            out.extend_from_slice(&room[..made]);
        }
        assert!(whole.iter().zip(&out).all(|(whole, out)| whole.re == *out));
    }
}
