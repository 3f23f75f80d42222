//! A complex filter evaluated at evenly spaced times between samples, in 16-bit integers.
//!
//! Samples and taps are pairs of 16-bit parts, so that one instruction multiplies both parts and
//! adds them up, in twice as many lanes as floats have. Four times in a row share one window of
//! samples, because a filter with another set of taps for every output is bound by loads, not by
//! multiplications. Each time uses the nearest of many tabulated phases. Outputs are levelled
//! before they are written, and measured at the same time. Sums of products are exact and all later
//! operations have a fixed order: every copy gives the same bits.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(avx512)]
mod avx512;
#[cfg(all(target_arch = "aarch64", target_endian = "little"))]
mod neon;

use crate::Complex;
use crate::chunks::Chunks;
use bytemuck::Zeroable;

/// Outputs computed together.
pub const GROUP: usize = 8;

/// Outputs that share a window.
const SHARE: usize = 4;

/// Pairs processed together; the length of a window is a multiple.
const LANES: usize = 16;

/// One sample in units of time, 2³².
const SAMPLE: f64 = 4_294_967_296.0;

/// The largest sum of the magnitudes of a phase's taps with which no sum of products exceeds 32
/// bits.
const TAPS_SUM: f64 = 65_000.0;

/// The limit of phases and of the length of a window: their product is taken of 16-bit integers.
const PLACES_MAX: usize = 1 << 15;

/// A sample in 16-bit parts, real part first.
pub type IntSample = [i16; 2];

/// Taps in a line of the cache.
#[derive(Clone, Copy, Debug, bytemuck::Zeroable, bytemuck::Pod)]
#[repr(C, align(64))]
struct TapLine([IntSample; LANES]);

/// The wanted part of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputPart {
    /// The real part.
    Real,
    /// The imaginary part.
    Imaginary,
}

/// An impulse response tabulated at many phases.
///
/// With samples `x[n]` at integer times, the output at time `t` is the sum over `n` of
/// `x[n] * f(t - n)`, with `t` rounded to the nearest of `phases` per sample. For a signal of
/// root-mean-square frequency `b` in cycles per sample the rounding is like noise of
/// `(2 pi b / phases)^2 / 12` times its power, and rounding the taps is like noise 75 dB or more
/// below the output if a few dozen of them matter.
#[derive(Clone, Debug)]
pub struct Sampler {
    phases: u32,
    /// Samples before and after the whole part of a time that the output depends on.
    half: usize,
    /// The largest delay of an output behind its window.
    lead: usize,
    /// Samples of a window, a multiple of [`LANES`].
    window: usize,
    /// For each part zeros, and for each phase the taps and zeros to the window's end, at least
    /// `lead`: they are also the zeros before the taps of the next phase.
    rows: [Vec<TapLine>; 2],
    /// Zeros before the taps of the first phase. Outputs that are one sample behind their window,
    /// most of all, read whole lines of the cache.
    base: usize,
    /// The integer value of a tap of one.
    scale: f64,
}

/// The times of outputs, in samples.
#[derive(Clone, Copy, Debug)]
pub struct Times {
    /// The first time.
    pub start: f64,
    /// The interval.
    pub step: f64,
}

/// The levelling of outputs: an offset that is subtracted, a limit on both sides, a gain.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Levelling {
    /// The subtracted offset.
    pub offset: f32,
    /// The largest distance of outputs from the offset.
    pub limit: f32,
    /// The gain.
    pub gain: f32,
}

impl Default for Levelling {
    fn default() -> Self {
        Self { offset: 0.0, limit: f32::MAX, gain: 1.0 }
    }
}

impl Levelling {
    /// Returns an output with offset and limit, before the gain.
    #[inline(always)]
    #[must_use]
    pub fn place(&self, x: f32) -> f32 {
        let x = x - self.offset;
        let x = if x > -self.limit { x } else { -self.limit };
        if x < self.limit { x } else { self.limit }
    }
}

/// Means of outputs with offset and limit, before the gain.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Means {
    /// The mean.
    pub plain: f32,
    /// The mean square.
    pub square: f32,
}

impl Sampler {
    /// Tabulates `response`, a function of time in samples that is zero beyond `half_span`, for
    /// outputs at most `max_step` samples apart.
    ///
    /// # Panics
    /// If there are no phases, or 32768 or more, or a span or step is not positive, or a window has
    /// 32768 or more samples.
    #[must_use]
    pub fn new(
        phases: u32,
        half_span: f64,
        max_step: f64,
        response: impl Fn(f64) -> Complex<f64>,
    ) -> Self {
        assert!(phases > 0 && half_span > 0.0 && max_step > 0.0, "phases, a span and a step");
        let half = half_span.ceil() as usize;
        // The last output of those that share a window, with the first anywhere within its sample.
        let lead = ((SHARE - 1) as f64 * max_step).ceil() as usize;
        let window = (2 * half + lead).next_multiple_of(LANES);
        assert!(window.max(phases as usize) < PLACES_MAX, "fewer phases and samples");
        let tap = |i: usize| {
            let mu = (i / (2 * half)) as f64 / f64::from(phases);
            response(mu + (half - 1) as f64 - (i % (2 * half)) as f64)
        };
        let taps: Vec<_> = (0..phases as usize * 2 * half).map(tap).collect();
        let [peak, sum] = most(&taps, 2 * half);
        let scale = (TAPS_SUM / sum).min(f64::from(i16::MAX) / peak);
        let base = (lead.max(1) - 1).next_multiple_of(LANES) + 1;
        let lines = (base + phases as usize * window).div_ceil(LANES);
        let mut rows = std::array::from_fn(|_| vec![TapLine::zeroed(); lines]);
        for (phase, taps) in taps.chunks_exact(2 * half).enumerate() {
            for (place, f) in (phase * window + base..).zip(taps) {
                let [re, im] = [f.re, f.im].map(|x| (x * scale).round() as i16);
                let mut set = |part: OutputPart, tap| {
                    bytemuck::cast_slice_mut::<_, IntSample>(&mut rows[part as usize])[place] = tap;
                };
                set(OutputPart::Real, [re, -im]);
                set(OutputPart::Imaginary, [im, re]);
            }
        }
        Self { phases, half, lead, window, rows, base, scale }
    }

    /// Returns the samples needed before the whole part of a time.
    #[must_use]
    pub fn before(&self) -> usize {
        self.half
    }

    /// Returns the samples needed from the whole part of a group's first time on.
    #[must_use]
    pub fn after(&self) -> usize {
        self.window + 2 - self.half
    }

    /// Computes a part of the filter's outputs at the times, levelled, for samples in which `one`
    /// represents 1.0.
    ///
    /// # Panics
    /// If the outputs are not a multiple of [`GROUP`], or the row does not hold the samples that
    /// they need.
    pub fn sample(
        &self,
        part: OutputPart,
        times: Times,
        (row, one): (&[IntSample], f64),
        levelling: Levelling,
        out: &mut [f32],
    ) -> Means {
        let len = out.len();
        let (groups, rest) = out.in_chunks_mut::<GROUP>();
        assert!(rest.is_empty(), "whole groups");
        let run = Run {
            rows: bytemuck::cast_slice(&self.rows[part as usize]),
            sampler: self,
            row,
            at: self.fixed(times.start + 0.5 / f64::from(self.phases)),
            step: self.fixed(times.step),
            scale: (1.0 / (self.scale * one)) as f32,
            levelling,
        };
        assert!(run.fits(groups.len()), "samples around every time");
        let [plain, square] = run.run(groups).map(|[a, b, c, d, e, f, g, h]| {
            (((a + b) + (c + d)) + ((e + f) + (g + h))) / len.max(1) as f32
        });
        Means { plain, square }
    }

    /// Returns a time in fixed point.
    fn fixed(&self, time: f64) -> u64 {
        (time * SAMPLE) as u64
    }
}

/// Returns the largest part of a tap, and the largest sum of the parts of a phase's taps.
fn most(taps: &[Complex<f64>], of_phase: usize) -> [f64; 2] {
    let parts = |f: &Complex<f64>| [f.re.abs(), f.im.abs()];
    let peak = taps.iter().flat_map(parts).fold(f64::MIN_POSITIVE, f64::max);
    let sums = taps.chunks(of_phase).map(|taps| taps.iter().flat_map(parts).sum());
    [peak, sums.fold(f64::MIN_POSITIVE, f64::max)]
}

/// Outputs to be computed. The times are in fixed point, moved by half a phase, so rounding down
/// gives the nearest phase.
#[derive(Clone, Copy)]
struct Run<'a> {
    sampler: &'a Sampler,
    /// Taps of the wanted part.
    rows: &'a [IntSample],
    row: &'a [IntSample],
    at: u64,
    step: u64,
    /// The scale from sums to outputs.
    scale: f32,
    levelling: Levelling,
}

/// For each position in a group, the sum of outputs and of their squares.
type Sums = [[f32; GROUP]; 2];

impl Run<'_> {
    /// Runs the best copy of [`sample_plain`] for this processor.
    fn run(&self, groups: &mut [[f32; GROUP]]) -> Sums {
        #[cfg(target_arch = "x86_64")]
        {
            #[cfg(avx512)]
            if crate::simd::has_vnni() {
                // SAFETY: `simd` has found the features, and `fits`, which the only caller of `run`
                // asserts, that the row holds all samples.
                return unsafe { avx512::sample_512(self, groups) };
            }
            if crate::simd::has_avx2_fma() {
                // SAFETY: `simd` has found the features, and `fits`, which the only caller of `run`
                // asserts, that the row holds all samples.
                return unsafe { avx2::sample_256(self, groups) };
            }
        }
        #[cfg(all(target_arch = "aarch64", target_endian = "little"))]
        // SAFETY: `fits`, which the only caller of `run` asserts: the row holds all samples.
        return unsafe { neon::sample(self, groups) };
        #[cfg_attr(target_arch = "aarch64", allow(unreachable_code))]
        sample_plain(self, groups)
    }

    /// Returns whether the windows of so many groups are within the row, with every time at most
    /// `lead` samples behind the time whose window it shares.
    fn fits(&self, groups: usize) -> bool {
        let Sampler { half, lead, window, .. } = *self.sampler;
        let whole = |time: u64| (time >> 32) as usize;
        let Some(last) = self
            .step
            .checked_mul((groups * GROUP) as u64)
            .and_then(|span| span.checked_add(self.at))
        else {
            return false;
        };
        let end = whole(last) + 1 + window - half;
        whole(self.at) + 1 >= half
            && self.step <= (lead as u64) << 32
            && (SHARE - 1) as u64 * self.step <= (lead as u64) << 32
            && end <= self.row.len()
    }

    /// Returns the index of the first sample of a window whose first output is at `at`.
    #[inline(always)]
    fn window(&self, at: u64) -> usize {
        (at >> 32) as usize + 1 - self.sampler.half
    }

    /// Returns the index of the first tap for the time `at`, shifted into the window of `first`.
    #[inline(always)]
    fn taps(&self, at: u64, first: u64) -> usize {
        let phase = ((at >> 17 & 0x7FFF) as usize * self.sampler.phases as usize) >> 15;
        let late = (at >> 32) - (first >> 32);
        phase * self.sampler.window + self.sampler.base - late as usize
    }
}

/// Runs the reference implementation. The run must [fit](Run::fits).
fn sample_plain(run: &Run<'_>, out: &mut [[f32; GROUP]]) -> Sums {
    let window = run.sampler.window;
    let (mut at, mut first) = (run.at, run.at);
    let mut sums = Sums::default();
    for (n, out) in out.as_flattened_mut().iter_mut().enumerate() {
        if n % SHARE == 0 {
            first = at;
        }
        let samples = &run.row[run.window(first)..][..window];
        let taps = &run.rows[run.taps(at, first)..][..window];
        let products = taps.iter().zip(samples).map(|(tap, x)| {
            i32::from(tap[0]) * i32::from(x[0]) + i32::from(tap[1]) * i32::from(x[1])
        });
        let y = run.levelling.place(products.sum::<i32>() as f32 * run.scale);
        sums[0][n % GROUP] += y;
        sums[1][n % GROUP] += y * y;
        *out = y * run.levelling.gain;
        at += run.step;
    }
    sums
}

#[cfg(test)]
mod tests;
