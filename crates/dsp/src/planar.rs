//! Complex samples as separate real and imaginary rows.

use crate::rotator::{LANES, Rotator, wrap_rad};
use crate::simd::madd;
use crate::{Sample, multiversion};

/// Samples after which the mixer starts from its exact phase again.
const RESTART: usize = 2048;

/// A correction of samples: an offset taken away, then the imaginary part times a gain, less a
/// share of the real part.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Trim {
    /// What is taken away.
    pub offset: Sample,
    /// Gain of the imaginary part.
    pub gain: f32,
    /// How much of the real part is taken from the imaginary part.
    pub cross: f32,
}

impl Default for Trim {
    fn default() -> Self {
        Self { offset: Sample::ZERO, gain: 1.0, cross: 0.0 }
    }
}

impl Trim {
    /// One sample corrected.
    #[inline(always)]
    #[must_use]
    pub fn apply(&self, sample: Sample) -> Sample {
        let x = sample - self.offset;
        Sample::new(x.re, x.im * self.gain - x.re * self.cross)
    }
}

/// Means of samples, their squares and the product of their parts.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Moments {
    /// Mean real part.
    pub re: f64,
    /// Mean imaginary part.
    pub im: f64,
    /// Mean square of the real part.
    pub power_re: f64,
    /// Mean square of the imaginary part.
    pub power_im: f64,
    /// Mean product of both.
    pub product: f64,
}

impl Moments {
    /// Moves by a share of the way towards `other`.
    pub fn approach(&mut self, other: &Self, share: f64) {
        let step = |x: &mut f64, y: f64| *x += share * (y - *x);
        step(&mut self.re, other.re);
        step(&mut self.im, other.im);
        step(&mut self.power_re, other.power_re);
        step(&mut self.power_im, other.power_im);
        step(&mut self.product, other.product);
    }
}

/// The moments of some samples.
#[must_use]
pub fn moments(samples: &[Sample]) -> Moments {
    let mut sums = [[0.0; LANES]; 5];
    add_moments(samples, &mut sums);
    let scale = 1.0 / samples.len().max(1) as f64;
    let [re, im, power_re, power_im, product] =
        sums.map(|lanes| lanes.iter().map(|x| f64::from(*x)).sum::<f64>() * scale);
    Moments { re, im, power_re, power_im, product }
}

multiversion! {
    fn add_moments(samples: &[Sample], sums: &mut [[f32; LANES]; 5]) = add_moments_body;
}

#[inline(always)]
fn add_moments_body<const FMA: bool>(samples: &[Sample], sums: &mut [[f32; LANES]; 5]) {
    let (eights, rest) = samples.as_chunks::<LANES>();
    let mut add = |lane: usize, x: Sample| {
        sums[0][lane] += x.re;
        sums[1][lane] += x.im;
        sums[2][lane] = madd::<FMA>(x.re, x.re, sums[2][lane]);
        sums[3][lane] = madd::<FMA>(x.im, x.im, sums[3][lane]);
        sums[4][lane] = madd::<FMA>(x.re, x.im, sums[4][lane]);
    };
    for eight in eights {
        for (lane, x) in eight.iter().enumerate() {
            add(lane, *x);
        }
    }
    rest.iter().for_each(|x| add(0, *x));
}

/// Shifts samples in frequency while splitting them into real and imaginary rows.
#[derive(Clone, Debug)]
pub struct Mixer {
    phase_rad: f64,
    rate_rad: f64,
    trim: Trim,
}

impl Mixer {
    /// A mixer that turns by `rate_rad` per sample, starting at phase zero.
    #[must_use]
    pub fn new(rate_rad: f64) -> Self {
        Self { phase_rad: 0.0, rate_rad, trim: Trim::default() }
    }

    /// Corrects samples so from now on, before they are mixed.
    pub fn set_trim(&mut self, trim: Trim) {
        self.trim = trim;
    }

    /// Appends the mixed `samples` to the rows. A sample that is not finite becomes zero; returns
    /// how many there were.
    pub fn mix(&mut self, samples: &[Sample], re: &mut Vec<f32>, im: &mut Vec<f32>) -> usize {
        let mut bad = 0;
        for chunk in samples.chunks(RESTART) {
            let start = re.len();
            re.resize(start + chunk.len(), 0.0);
            im.resize(start + chunk.len(), 0.0);
            let rotator = Rotator::new(self.phase_rad, self.rate_rad);
            bad += mix_chunk(rotator, self.trim, chunk, &mut re[start..], &mut im[start..]);
            self.phase_rad = wrap_rad(self.phase_rad + self.rate_rad * chunk.len() as f64);
        }
        bad as usize
    }
}

multiversion! {
    fn mix_chunk(
        rotator: Rotator,
        trim: Trim,
        samples: &[Sample],
        re: &mut [f32],
        im: &mut [f32],
    ) -> u32 = mix_body;
}

#[inline(always)]
fn mix_body<const FMA: bool>(
    mut rotator: Rotator,
    trim: Trim,
    samples: &[Sample],
    re: &mut [f32],
    im: &mut [f32],
) -> u32 {
    let mut bad = [0; LANES];
    let whole = samples.len() / LANES * LANES;
    let (re, re_tail) = re.split_at_mut(whole);
    let (im, im_tail) = im.split_at_mut(whole);
    let rows = re.as_chunks_mut::<LANES>().0.iter_mut().zip(im.as_chunks_mut::<LANES>().0);
    for ((re, im), samples) in rows.zip(samples.as_chunks::<LANES>().0) {
        for lane in 0..LANES {
            let (sample, is_bad) = cleaned(samples[lane]);
            let Sample { re: i, im: q } = trim.apply(sample);
            bad[lane] += is_bad;
            re[lane] = i * rotator.cos[lane] - q * rotator.sin[lane];
            im[lane] = i * rotator.sin[lane] + q * rotator.cos[lane];
        }
        rotator.advance();
    }
    for (lane, sample) in samples[whole..].iter().enumerate() {
        let (sample, is_bad) = cleaned(*sample);
        let Sample { re: i, im: q } = trim.apply(sample);
        bad[0] += is_bad;
        re_tail[lane] = i * rotator.cos[lane] - q * rotator.sin[lane];
        im_tail[lane] = i * rotator.sin[lane] + q * rotator.cos[lane];
    }
    bad.iter().sum()
}

/// The sample, or zero if it is not finite or absurdly large.
#[inline(always)]
fn cleaned(sample: Sample) -> (Sample, u32) {
    const LIMIT: f32 = 1e9;
    let good = sample.re.abs() < LIMIT && sample.im.abs() < LIMIT;
    if good { (sample, 0) } else { (Sample::ZERO, 1) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mixing_a_tone_to_zero_leaves_a_constant() {
        let phase = |n: usize| (0.7 * n as f64).rem_euclid(std::f64::consts::TAU) as f32;
        let tone = |n: usize| Sample::from_polar(0.5, phase(n));
        let samples: Vec<Sample> = (0..5003).map(tone).collect();
        let mut mixer = Mixer::new(-0.7);
        let (mut re, mut im) = (Vec::new(), Vec::new());
        for chunk in samples.chunks(777) {
            assert_eq!(mixer.mix(chunk, &mut re, &mut im), 0);
        }
        assert!(re.iter().all(|x| (x - 0.5).abs() < 2e-4) && im.iter().all(|x| x.abs() < 2e-4));
    }

    #[test]
    fn moments_are_means_of_products() {
        let samples: Vec<Sample> =
            (0..1003).map(|n| Sample::new((n % 5) as f32 - 1.0, (n % 3) as f32)).collect();
        let mean = |of: &dyn Fn(&Sample) -> f32| {
            samples.iter().map(|x| f64::from(of(x))).sum::<f64>() / samples.len() as f64
        };
        let found = moments(&samples);
        let pairs = [
            (found.re, mean(&|x| x.re)),
            (found.im, mean(&|x| x.im)),
            (found.power_re, mean(&|x| x.re * x.re)),
            (found.power_im, mean(&|x| x.im * x.im)),
            (found.product, mean(&|x| x.re * x.im)),
        ];
        assert!(pairs.iter().all(|(a, b)| (a - b).abs() < 1e-5), "{pairs:?}");
    }

    #[test]
    fn samples_that_are_no_numbers_are_counted_and_silenced() {
        let mut samples = vec![Sample::new(1.0, 1.0); 37];
        samples[3].re = f32::NAN;
        samples[20].im = f32::INFINITY;
        samples[36].re = f32::MAX;
        let (mut re, mut im) = (Vec::new(), Vec::new());
        assert_eq!(Mixer::new(0.1).mix(&samples, &mut re, &mut im), 3);
        assert!(re.iter().chain(&im).all(|x| x.is_finite()));
    }
}
