//! CIC filters of four stages (Hogenauer 1981): any whole factor, in exact integers.
//!
//! Samples are numbers of up to 17 bits with 12 bits behind the point. A filter has the gain of
//! hardware: that of its integers over the next power of two.

use crate::Sample;

/// Fraction bits of the integers: 17 bits of a sample, these, and 32 of growth fit in 64.
const FRACTION_BITS: u32 = 12;
const ONE: f32 = (1_u32 << FRACTION_BITS) as f32;

const STAGES: usize = 4;

type Pair = [i64; 2];

fn integer(sample: Sample) -> Pair {
    [(sample.re * ONE) as i64, (sample.im * ONE) as i64]
}

fn sample(pair: Pair, gain: f64) -> Sample {
    Sample::new((pair[0] as f64 * gain) as f32, (pair[1] as f64 * gain) as f32)
}

/// Advances the integrators by one value; returns their sum.
fn integrate(stages: &mut [Pair; STAGES], value: Pair) -> Pair {
    let mut sum = value;
    for stage in stages {
        for part in 0..2 {
            stage[part] = stage[part].wrapping_add(sum[part]);
        }
        sum = *stage;
    }
    sum
}

/// Advances the differentiators by one value; returns their difference.
fn differentiate(stages: &mut [Pair; STAGES], value: Pair) -> Pair {
    let mut difference = value;
    for stage in stages {
        let before = std::mem::replace(stage, difference);
        for part in 0..2 {
            difference[part] = difference[part].wrapping_sub(before[part]);
        }
    }
    difference
}

/// The state of a filter.
#[derive(Clone, Debug)]
struct Cic {
    rate: u32,
    gain: f64,
    integrators: [Pair; STAGES],
    differences: [Pair; STAGES],
}

impl Cic {
    fn new(rate: u8, growth: u64) -> Self {
        let gain = 1.0 / f64::from(ONE) / growth.next_power_of_two() as f64;
        let zero = [[0; 2]; STAGES];
        Self { rate: rate.max(1).into(), gain, integrators: zero, differences: zero }
    }
}

/// Divides the rate by 1 to 255; the gain is R⁴ over the next power of two.
#[derive(Clone, Debug)]
pub struct CicDecimator {
    cic: Cic,
    /// Samples until the next output.
    wait: u32,
}

impl CicDecimator {
    /// Returns a filter without history; a rate of 0 counts as 1.
    #[must_use]
    pub fn new(rate: u8) -> Self {
        let cic = Cic::new(rate, u64::from(rate.max(1)).pow(4));
        Self { wait: cic.rate, cic }
    }

    /// Filters samples in place; returns the number of outputs, one behind each `rate` samples.
    pub fn process(&mut self, samples: &mut [Sample]) -> usize {
        if self.cic.rate == 1 {
            return samples.len();
        }
        let mut made = 0;
        let Cic { rate, gain, integrators, differences } = &mut self.cic;
        for index in 0..samples.len() {
            let sum = integrate(integrators, integer(samples[index]));
            self.wait -= 1;
            if self.wait == 0 {
                self.wait = *rate;
                samples[made] = sample(differentiate(differences, sum), *gain);
                made += 1;
            }
        }
        made
    }
}

/// Multiplies the rate by 1 to 255; the gain is R³ over the next power of two.
#[derive(Clone, Debug)]
pub struct CicInterpolator {
    cic: Cic,
}

impl CicInterpolator {
    /// Returns a filter without history; a rate of 0 counts as 1.
    #[must_use]
    pub fn new(rate: u8) -> Self {
        Self { cic: Cic::new(rate, u64::from(rate.max(1)).pow(3)) }
    }

    /// Filters `input` to `rate` times as many samples.
    ///
    /// # Panics
    /// With a rate of 1, if the slices differ in length.
    pub fn process(&mut self, input: &[Sample], out: &mut [Sample]) {
        if self.cic.rate == 1 {
            return out.copy_from_slice(input);
        }
        let Cic { rate, gain, integrators, differences } = &mut self.cic;
        for (input, out) in input.iter().zip(out.chunks_mut(*rate as usize)) {
            let mut value = differentiate(differences, integer(*input));
            for out in out {
                *out = sample(integrate(integrators, value), *gain);
                value = [0; 2];
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_signals::{power_db, tone};

    /// The gain that the hardware is known for.
    fn residual(rate: u8, power: u32) -> f64 {
        let gain = u64::from(rate).pow(power);
        gain as f64 / gain.next_power_of_two() as f64
    }

    #[test]
    fn the_gain_is_the_hardwares_and_what_folds_to_zero_is_stopped() {
        for rate in [2, 3, 5, 25, 255] {
            let count = 255 * 40;
            let mut samples = tone(0.0, 20_000.0, count);
            let made = CicDecimator::new(rate).process(&mut samples);
            assert_eq!(made, count / usize::from(rate));
            let level = f64::from(samples[made - 1].re) / 20_000.0;
            assert!((level / residual(rate, 4) - 1.0).abs() < 1e-4, "{rate}: {level}");

            let mut samples = tone(1.0 / f64::from(rate), 20_000.0, count);
            let made = CicDecimator::new(rate).process(&mut samples);
            assert!(power_db(&samples[5..made]) < -20.0, "{rate}");
        }
    }

    #[test]
    fn interpolation_has_the_hardwares_gain() {
        for rate in [2, 3, 255] {
            let mut out = vec![Sample::default(); 20 * usize::from(rate)];
            CicInterpolator::new(rate).process(&tone(0.0, 20_000.0, 20), &mut out);
            let level = f64::from(out.last().unwrap().re) / 20_000.0;
            assert!((level / residual(rate, 3) - 1.0).abs() < 1e-4, "{rate}: {level}");
        }
    }

    #[test]
    fn a_rate_of_one_changes_nothing() {
        let input = tone(0.3, 1000.0, 100);
        let (mut samples, mut out) = (input.clone(), vec![Sample::default(); 100]);
        assert_eq!(CicDecimator::new(1).process(&mut samples), 100);
        CicInterpolator::new(1).process(&input, &mut out);
        assert!(samples == input && out == input);
    }
}
