//! An oscillator whose phase is an integer: exact for hours, independent of the chunks.
//!
//! The phase is counted in units of 2⁻⁶⁴ cycles and wraps around. Each value is computed from its
//! own phase, not from the previous value, so there is no drift and no dependence on where a call
//! began.

use crate::chunks::Chunks;
use crate::simd::madd;
use crate::{Sample, multiversion};
use std::f32::consts::TAU;

/// Values computed together.
const LANES: usize = 8;

/// One cycle, in the oscillator's units.
const TURN: f64 = 18_446_744_073_709_551_616.0;

/// A phase and its step.
///
/// ```
/// use millstream_dsp::nco::Nco;
///
/// let mut nco = Nco::new(0.25); // a quarter of a cycle per value
/// let mut out = [Default::default(); 4];
/// nco.exponential(&mut out);
/// assert!((out[1].im - 1.0).abs() < 1e-6 && (out[2].re + 1.0).abs() < 1e-6);
/// ```
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Nco {
    phase: u64,
    step: u64,
}

impl Nco {
    /// Creates an oscillator at phase zero with `cycles` per value; whole cycles do not count.
    #[must_use]
    pub fn new(cycles: f64) -> Self {
        Self { phase: 0, step: turns(cycles) }
    }

    /// Creates the oscillator of `frequency_hz` at `rate_hz`: to 2⁻⁶⁴ of a cycle when both are
    /// whole numbers, to the precision of their quotient (2⁻⁵³) otherwise.
    #[must_use]
    pub fn from_hz(frequency_hz: f64, rate_hz: f64) -> Self {
        Self { phase: 0, step: step(frequency_hz, rate_hz) }
    }

    /// Changes the frequency; the phase stays continuous.
    pub fn retune_hz(&mut self, frequency_hz: f64, rate_hz: f64) {
        self.step = step(frequency_hz, rate_hz);
    }

    /// Sets the phase of the next value, in cycles.
    pub fn set_phase(&mut self, turn: f64) {
        self.phase = turns(turn);
    }

    /// Returns the phase of the next value, in 2⁻⁶⁴ cycles.
    #[must_use]
    pub fn phase(&self) -> u64 {
        self.phase
    }

    /// Returns the phase step, in 2⁻⁶⁴ cycles.
    #[must_use]
    pub fn step(&self) -> u64 {
        self.step
    }

    /// Advances by `values`.
    pub fn skip(&mut self, values: usize) {
        self.phase = self.phase.wrapping_add(self.step.wrapping_mul(values as u64));
    }

    /// Writes the next values of `exp(j phase)`.
    pub fn exponential(&mut self, out: &mut [Sample]) {
        fill(self.phase, self.step, out);
        self.skip(out.len());
    }

    /// Multiplies `input` by the next values, which shifts it in frequency.
    ///
    /// # Panics
    /// If the slices differ in length.
    pub fn rotate(&mut self, input: &[Sample], out: &mut [Sample]) {
        assert_eq!(input.len(), out.len(), "as many samples out as in");
        rotate(self.phase, self.step, input, out);
        self.skip(out.len());
    }

    /// Writes `wave` of the next phases, a function of the cycle in 0..1.
    pub fn shape(&mut self, out: &mut [f32], wave: impl Fn(f32) -> f32) {
        for out in out {
            // An f32 below 1 holds 24 bits.
            *out = wave((self.phase >> 40) as f32 * (1.0 / 16_777_216.0));
            self.phase = self.phase.wrapping_add(self.step);
        }
    }
}

/// Returns `cycles` modulo one cycle.
fn turns(cycles: f64) -> u64 {
    let part = cycles - cycles.floor();
    // Saturates at 2^64 - 1 for a fraction that rounds to one.
    (part * TURN) as u64
}

fn step(frequency_hz: f64, rate_hz: f64) -> u64 {
    const WHOLE_MAX: f64 = 9_007_199_254_740_992.0;
    let whole = |x: f64| x.fract() == 0.0 && x.abs() < WHOLE_MAX;
    if whole(frequency_hz) && whole(rate_hz) && rate_hz >= 1.0 {
        let part = (frequency_hz as i64).rem_euclid(rate_hz as i64) as u128;
        let rate = rate_hz as u128;
        return (((part << 64) + rate / 2) / rate) as u64;
    }
    turns(frequency_hz / rate_hz)
}

/// Returns cosine and sine of a phase in 2⁻³² cycles, to 1e-7: the nearest quarter cycle, and
/// Taylor's series for the rest, which is at most an eighth of a cycle.
#[inline(always)]
pub(crate) fn cos_sin<const FMA: bool>(turn: u32) -> (f32, f32) {
    let quarter = turn.wrapping_add(1 << 29) >> 30;
    let rest = turn.wrapping_sub(quarter << 30) as i32;
    let x = rest as f32 * (TAU / 4_294_967_296.0);
    let z = x * x;
    let mut sin = madd::<FMA>(z, 2.755_731_9e-6, -1.984_127e-4);
    sin = madd::<FMA>(z, sin, 8.333_333e-3);
    sin = madd::<FMA>(z, sin, -1.666_666_7e-1);
    sin = madd::<FMA>(z * x, sin, x);
    let mut cos = madd::<FMA>(z, 2.480_158_7e-5, -1.388_888_9e-3);
    cos = madd::<FMA>(z, cos, 4.166_666_6e-2);
    cos = madd::<FMA>(z, cos, -0.5);
    cos = madd::<FMA>(z, cos, 1.0);
    let odd = quarter & 1 == 1;
    let (c, s) = if odd { (sin, cos) } else { (cos, sin) };
    let negative = |bits: u32| (bits & 2) << 30;
    let cos = f32::from_bits(c.to_bits() ^ negative(quarter + 1));
    let sin = f32::from_bits(s.to_bits() ^ negative(quarter));
    (cos, sin)
}

multiversion! {
    fn fill(phase: u64, step: u64, out: &mut [Sample]) = fill_body;
}

#[inline(always)]
fn fill_body<const FMA: bool>(phase: u64, step: u64, out: &mut [Sample]) {
    each::<FMA>(phase, step, out, |_, turn| turn);
}

multiversion! {
    fn rotate(phase: u64, step: u64, input: &[Sample], out: &mut [Sample]) = rotate_body;
}

#[inline(always)]
fn rotate_body<const FMA: bool>(phase: u64, step: u64, input: &[Sample], out: &mut [Sample]) {
    each::<FMA>(phase, step, out, |n, turn| {
        let x = input[n];
        Sample::new(x.re * turn.re - x.im * turn.im, x.re * turn.im + x.im * turn.re)
    });
}

/// Computes `out[n] = make(n, exp(j (phase + n step)))`.
#[inline(always)]
fn each<const FMA: bool>(
    phase: u64,
    step: u64,
    out: &mut [Sample],
    make: impl Fn(usize, Sample) -> Sample,
) {
    let phase_of = |n: usize| phase.wrapping_add(step.wrapping_mul(n as u64));
    let (blocks, tail) = out.in_chunks_mut::<LANES>();
    let mut phases: [u64; LANES] = std::array::from_fn(phase_of);
    let stride = step.wrapping_mul(LANES as u64);
    let tail_start = blocks.len() * LANES;
    for (b, block) in blocks.iter_mut().enumerate() {
        let (mut cos, mut sin) = ([0.0; LANES], [0.0; LANES]);
        for lane in 0..LANES {
            (cos[lane], sin[lane]) = cos_sin::<FMA>((phases[lane] >> 32) as u32);
            phases[lane] = phases[lane].wrapping_add(stride);
        }
        for lane in 0..LANES {
            block[lane] = make(b * LANES + lane, Sample::new(cos[lane], sin[lane]));
        }
    }
    for (n, out) in tail.iter_mut().enumerate() {
        let n = tail_start + n;
        let (cos, sin) = cos_sin::<FMA>((phase_of(n) >> 32) as u32);
        *out = make(n, Sample::new(cos, sin));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_follow_the_exponential_everywhere() {
        for frequency in [0.0, 1e-9, 0.123_456_789, 0.25, -0.4, 0.5, 3.75] {
            let mut nco = Nco::new(frequency);
            nco.phase = turns(0.3);
            let mut out = vec![Sample::default(); 10_003];
            nco.exponential(&mut out);
            for (n, out) in out.iter().enumerate() {
                let turn = (0.3 + frequency * n as f64).rem_euclid(1.0);
                let (sin, cos) = (std::f64::consts::TAU * turn).sin_cos();
                assert!((f64::from(out.re) - cos).abs() < 3e-7, "{frequency} {n}");
                assert!((f64::from(out.im) - sin).abs() < 3e-7, "{frequency} {n}");
            }
        }
    }

    #[test]
    fn ten_hours_at_100_mhz_keep_the_phase() {
        let (frequency_hz, rate_hz, samples) = (12_345_679.0, 100e6, 3_600_000_000_007u128);
        let mut nco = Nco::from_hz(frequency_hz, rate_hz);
        nco.phase = nco.step.wrapping_mul(samples as u64);
        let exact = (12_345_679 * samples % 100_000_000) as f64 / 1e8;
        let found = nco.phase as f64 / TURN;
        // Half of 2^-64 cycles per sample.
        assert!((found - exact).abs() < 2e-7, "{found} {exact}");
    }

    #[test]
    fn chunks_of_any_size_give_the_same_bits() {
        let input: Vec<Sample> = (0..999).map(|n| Sample::new(n as f32, 1.0 - n as f32)).collect();
        let whole = |nco: &mut Nco| {
            let mut out = input.clone();
            nco.rotate(&input, &mut out);
            out
        };
        let (mut once, mut often) = (Nco::new(0.0123), Nco::new(0.0123));
        let expected = whole(&mut once);
        let mut out = vec![Sample::default(); 999];
        for (input, out) in input.chunks(7).zip(out.chunks_mut(7)) {
            often.rotate(input, out);
        }
        assert_eq!((out, often), (expected, once));
    }

    #[test]
    fn retuning_keeps_the_phase() {
        let mut nco = Nco::from_hz(1000.0, 48_000.0);
        nco.skip(17);
        let phase = nco.phase;
        nco.retune_hz(-2500.5, 48_000.0);
        assert_eq!(nco.phase, phase);
        assert_eq!(nco.step, Nco::new(-2500.5 / 48_000.0).step);
    }
}
