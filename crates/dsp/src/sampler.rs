//! A filter evaluated at evenly spaced times between samples, for two rows at once.
//!
//! Four times in a row share one window of samples, because loading samples, not multiplying
//! them, is what bounds a filter with another set of taps for every output. Each time takes the
//! nearest of many tabulated phases.

#[cfg(target_arch = "x86_64")]
mod x86;

#[cfg(target_arch = "x86_64")]
use crate::simd::has_avx2_fma;

/// Values worked on together; windows are multiples of twice as many.
const LANES: usize = 8;

/// Outputs that share a window.
pub const GROUP: usize = 4;

/// 2³²: a sample in units of time.
const SAMPLE: f64 = 4_294_967_296.0;

/// An impulse response tabulated at many phases.
///
/// With samples `x[n]` at integer times, the output at time `t` is the sum over `n` of
/// `x[n] * f(t - n)`, with `t` rounded to the nearest of `phases` per sample. For a signal of
/// root-mean-square frequency `b` in cycles per sample the rounding is like noise of
/// `(2 pi b / phases)^2 / 12` times its power.
#[derive(Clone, Debug)]
pub struct Sampler {
    phases: u32,
    /// Samples before and after the whole part of a time that the output depends on.
    half: usize,
    /// Zeros before the taps of a phase: how much later than its window an output may be.
    lead: usize,
    /// Samples of a window, a multiple of twice [`LANES`].
    window: usize,
    /// For each phase `lead` zeros, the taps, and zeros to the window's end and beyond.
    rows: Vec<f32>,
    stride: usize,
}

/// When outputs are taken, in samples.
#[derive(Clone, Copy, Debug)]
pub struct Times {
    /// The first.
    pub start: f64,
    /// From one to the next.
    pub step: f64,
}

impl Sampler {
    /// Tabulates `response`, a function of time in samples that is zero beyond `half_span`, for
    /// outputs at most `max_step` samples apart.
    ///
    /// # Panics
    /// If there are no phases, or a span or step is not positive.
    #[must_use]
    pub fn new(phases: u32, half_span: f64, max_step: f64, response: impl Fn(f64) -> f64) -> Self {
        assert!(phases > 0 && half_span > 0.0 && max_step > 0.0, "phases, a span and a step");
        let half = half_span.ceil() as usize;
        // The last of a group, with the first anywhere within its sample.
        let lead = ((GROUP - 1) as f64 * max_step).ceil() as usize;
        let window = (2 * half + lead).next_multiple_of(2 * LANES);
        let stride = lead + window;
        let mut rows = vec![0.0; phases as usize * stride];
        for (phase, row) in rows.chunks_exact_mut(stride).enumerate() {
            let mu = phase as f64 / f64::from(phases);
            for (j, tap) in row[lead..lead + 2 * half].iter_mut().enumerate() {
                *tap = response(mu + (half - 1) as f64 - j as f64) as f32;
            }
        }
        Self { phases, half, lead, window, rows, stride }
    }

    /// Samples that have to be there before the whole part of a time.
    #[must_use]
    pub fn before(&self) -> usize {
        self.half
    }

    /// Samples that have to be there from the whole part of the first time of a group on.
    #[must_use]
    pub fn after(&self) -> usize {
        self.window + 2 - self.half
    }

    /// The filter's outputs at the times, for both rows.
    ///
    /// # Panics
    /// If the outputs are not equally many and a multiple of [`GROUP`], or a row does not hold what
    /// they need.
    pub fn sample(&self, times: Times, rows: [&[f32]; 2], [re, im]: [&mut [f32]; 2]) {
        let (re, rest_re) = re.as_chunks_mut::<GROUP>();
        let (im, rest_im) = im.as_chunks_mut::<GROUP>();
        assert!(rest_re.is_empty() && rest_im.is_empty() && re.len() == im.len(), "whole groups");
        #[cfg(target_arch = "x86_64")]
        {
            if x86::has_avx512() && has_avx2_fma() {
                // SAFETY: the processor has the features.
                return unsafe { x86::sample_512(self, times, rows, re, im) };
            }
            if has_avx2_fma() {
                // SAFETY: the processor has the features.
                return unsafe { x86::sample_256(self, times, rows, re, im) };
            }
        }
        sample_body(self, times, rows, re, im);
    }

    /// The times in fixed point, moved by half a phase: rounded down they are the nearest.
    #[inline(always)]
    fn fixed(&self, times: Times) -> (u64, u64) {
        let start = (times.start + 0.5 / f64::from(self.phases)) * SAMPLE;
        (start as u64, (times.step * SAMPLE) as u64)
    }

    /// Window and taps of the group of outputs that begins at `at`.
    #[inline(always)]
    fn group<'a>(&'a self, at: u64, step: u64, [re, im]: [&'a [f32]; 2]) -> Group<'a> {
        let whole = (at >> 32) as usize;
        let first = whole + 1 - self.half;
        let window = first..first + self.window;
        let taps = |i: u64| self.taps(at + step * i, whole);
        Group {
            re: &re[window.clone()],
            im: &im[window],
            taps: [taps(0), taps(1), taps(2), taps(3)],
        }
    }

    /// The taps for a time, shifted into the window of one whose whole part is `whole`.
    #[inline(always)]
    fn taps(&self, at: u64, whole: usize) -> &[f32] {
        let phase = ((at & 0xFFFF_FFFF) * u64::from(self.phases)) >> 32;
        let late = (at >> 32) as usize - whole;
        let start = phase as usize * self.stride + self.lead - late;
        &self.rows[start..start + self.window]
    }
}

/// What four outputs are made of.
struct Group<'a> {
    re: &'a [f32],
    im: &'a [f32],
    taps: [&'a [f32]; GROUP],
}

/// The reference. The copies in vectors differ from it by rounding: a few units in the last place
/// of the largest partial sum.
fn sample_body(
    sampler: &Sampler,
    times: Times,
    rows: [&[f32]; 2],
    out_re: &mut [[f32; GROUP]],
    out_im: &mut [[f32; GROUP]],
) {
    let (mut at, step) = sampler.fixed(times);
    for (re, im) in out_re.iter_mut().zip(out_im) {
        let group = sampler.group(at, step, rows);
        at += step * GROUP as u64;
        for (i, taps) in group.taps.into_iter().enumerate() {
            (re[i], im[i]) = (product(taps, group.re), product(taps, group.im));
        }
    }
}

/// The sum of the products, in eight partial sums.
fn product(taps: &[f32], x: &[f32]) -> f32 {
    let mut sums = [0.0; LANES];
    for (taps, x) in taps.as_chunks::<LANES>().0.iter().zip(x.as_chunks::<LANES>().0) {
        for lane in 0..LANES {
            sums[lane] += taps[lane] * x[lane];
        }
    }
    sums.iter().sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A triangle of width two: linear interpolation.
    fn triangle(t: f64) -> f64 {
        (1.0 - t.abs()).max(0.0)
    }

    #[test]
    fn outputs_lie_between_the_samples_at_their_times() {
        let re: Vec<f32> = (0..400).map(|n| n as f32).collect();
        let im: Vec<f32> = re.iter().map(|x| -2.0 * x).collect();
        for step in [0.1, 0.5807, 1.0, 2.33] {
            let sampler = Sampler::new(256, 3.0, 1.001 * step, triangle);
            let mut out = [[0.0; 100]; 2];
            let [out_re, out_im] = &mut out;
            sampler.sample(Times { start: 7.3, step }, [&re, &im], [out_re, out_im]);
            for (k, (x, y)) in out[0].iter().zip(out[1]).enumerate() {
                let exact = 7.3 + step * k as f64;
                assert!((f64::from(*x) - exact).abs() < 0.5 / 256.0 + 1e-4, "{step} {k}: {x}");
                assert!((y + 2.0 * x).abs() < 1e-3);
            }
        }
    }

    #[test]
    fn what_is_asked_to_be_there_suffices() {
        for (half_span, step) in [(1.0, 0.3), (23.0, 0.5807), (40.5, 2.3), (100.0, 1.0)] {
            let sampler = Sampler::new(16, half_span, step, triangle);
            for mu in [0.0, 0.5, 0.999_999] {
                let start = sampler.before() as f64 + mu;
                let row = vec![1.0; sampler.before() + sampler.after()];
                let (mut re, mut im) = ([0.0; GROUP], [0.0; GROUP]);
                sampler.sample(Times { start, step }, [&row, &row], [&mut re, &mut im]);
                assert!(re.iter().chain(&im).all(|x| (x - 1.0).abs() < 1e-5), "{re:?}");
            }
        }
    }

    type Kernel = fn(&Sampler, Times, [&[f32]; 2], &mut [[f32; GROUP]], &mut [[f32; GROUP]]);

    /// Every copy that this processor runs.
    fn kernels() -> Vec<(&'static str, Kernel)> {
        let mut kernels: Vec<(&str, Kernel)> = Vec::new();
        #[cfg(target_arch = "x86_64")]
        {
            if has_avx2_fma() {
                // SAFETY: the processor has the features.
                kernels.push(("256", |a, b, c, d, e| unsafe { x86::sample_256(a, b, c, d, e) }));
            }
            if has_avx2_fma() && x86::has_avx512() {
                // SAFETY: the processor has the features.
                kernels.push(("512", |a, b, c, d, e| unsafe { x86::sample_512(a, b, c, d, e) }));
            }
        }
        kernels
    }

    #[test]
    fn the_fast_copies_agree_with_the_plain_one() {
        for step in [0.5807, 1.16, 2.3] {
            let sampler = Sampler::new(256, 23.0, 1.001 * step, |t| (-t * t / 90.0).exp() / 16.0);
            let row: Vec<f32> = (0..800).map(|i| ((i * 37) % 15) as f32 / 7.0 - 1.0).collect();
            let rows: [&[f32]; 2] = [&row, &row[1..]];
            let times = Times { start: 100.7, step };
            let mut plain = [[[0.0; GROUP]; 26]; 2];
            let [re, im] = &mut plain;
            sample_body(&sampler, times, rows, re, im);
            for (name, kernel) in kernels() {
                let mut fast = [[[0.0; GROUP]; 26]; 2];
                let [re, im] = &mut fast;
                kernel(&sampler, times, rows, re, im);
                let fast = fast.as_flattened().as_flattened().iter();
                let pairs = fast.zip(plain.as_flattened().as_flattened());
                let worst = pairs.map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
                // Fused multiply-add rounds once instead of twice, and in another order: a few
                // units of the largest sum.
                assert!(worst < 2e-6, "{name} at {step}: {worst}");
            }
        }
    }
}
