//! Complex samples as separate real and imaginary rows.

use crate::rotator::{LANES, Rotator, wrap_rad};
use crate::{Sample, multiversion};

/// Samples after which the mixer starts from its exact phase again.
const RESTART: usize = 2048;

/// Shifts samples in frequency while splitting them into real and imaginary rows.
#[derive(Clone, Debug)]
pub struct Mixer {
    phase_rad: f64,
    rate_rad: f64,
}

impl Mixer {
    /// A mixer that turns by `rate_rad` per sample, starting at phase zero.
    #[must_use]
    pub fn new(rate_rad: f64) -> Self {
        Self { phase_rad: 0.0, rate_rad }
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
            bad += mix_chunk(rotator, chunk, &mut re[start..], &mut im[start..]);
            self.phase_rad = wrap_rad(self.phase_rad + self.rate_rad * chunk.len() as f64);
        }
        bad as usize
    }
}

multiversion! {
    fn mix_chunk(
        rotator: Rotator,
        samples: &[Sample],
        re: &mut [f32],
        im: &mut [f32],
    ) -> u32 = mix_body;
}

#[inline(always)]
fn mix_body<const FMA: bool>(
    mut rotator: Rotator,
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
            let (i, q, is_bad) = cleaned(samples[lane]);
            bad[lane] += is_bad;
            re[lane] = i * rotator.cos[lane] - q * rotator.sin[lane];
            im[lane] = i * rotator.sin[lane] + q * rotator.cos[lane];
        }
        rotator.advance();
    }
    for (lane, sample) in samples[whole..].iter().enumerate() {
        let (i, q, is_bad) = cleaned(*sample);
        bad[0] += is_bad;
        re_tail[lane] = i * rotator.cos[lane] - q * rotator.sin[lane];
        im_tail[lane] = i * rotator.sin[lane] + q * rotator.cos[lane];
    }
    bad.iter().sum()
}

/// The parts of a sample, zero if one is not finite or absurdly large.
#[inline(always)]
fn cleaned(sample: Sample) -> (f32, f32, u32) {
    const LIMIT: f32 = 1e9;
    let good = sample.re.abs() < LIMIT && sample.im.abs() < LIMIT;
    if good { (sample.re, sample.im, 0) } else { (0.0, 0.0, 1) }
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
