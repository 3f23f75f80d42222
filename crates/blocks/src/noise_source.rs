//! Noise.

use crate::Sample;
use millstream_dsp::noise::Noise;
use millstream_flow::registry::BlockParameters;
use millstream_flow::{Block, BlockError, BlockFacts, Context, Item, Out, Ports, Work};
use std::ops::Mul;

/// The distribution of values.
#[derive(BlockParameters, Clone, Copy, Debug, Eq, PartialEq)]
pub enum Distribution {
    /// Normal, standard deviation 1; of complex samples each part has half the power.
    Gaussian,
    /// Evenly from -1 to 1, each part of complex samples.
    Uniform,
}

/// An item type of noise.
pub trait Noisy: Item + Mul<f32, Output = Self> {
    /// Returns the next value.
    fn next(noise: &mut Noise, distribution: Distribution) -> Self;
}

impl Noisy for f32 {
    fn next(noise: &mut Noise, distribution: Distribution) -> Self {
        match distribution {
            Distribution::Gaussian => noise.gaussian(),
            Distribution::Uniform => 2.0 * noise.unit() - 1.0,
        }
    }
}

impl Noisy for Sample {
    fn next(noise: &mut Noise, distribution: Distribution) -> Self {
        match distribution {
            Distribution::Gaussian => noise.gaussian_pair() * std::f32::consts::FRAC_1_SQRT_2,
            Distribution::Uniform => {
                let re = 2.0 * noise.unit() - 1.0;
                Self::new(re, 2.0 * noise.unit() - 1.0)
            }
        }
    }
}

/// Endless white noise, the same for the same seed. Gaussian noise has the power amplitude².
///
/// Ports: `out`.
#[derive(Debug, Ports)]
pub struct NoiseSource<T: Noisy> {
    /// Noise.
    pub output: Out<T>,
    noise: Noise,
    distribution: Distribution,
    amplitude: f32,
}

impl<T: Noisy> NoiseSource<T> {
    /// Creates the noise of a seed.
    #[must_use]
    pub fn new(distribution: Distribution, amplitude: f32, seed: u64) -> Self {
        Self { output: Out::new(), noise: Noise::new(seed), distribution, amplitude }
    }
}

impl<T: Noisy> Block for NoiseSource<T> {
    fn work(&mut self, _: &mut Context) -> Result<Work, BlockError> {
        let output = self.output.slice_mut();
        let items = output.len();
        for x in output {
            *x = T::next(&mut self.noise, self.distribution) * self.amplitude;
        }
        self.output.produce(items);
        Ok(Work::Continue)
    }

    fn facts(&self, facts: &mut BlockFacts) {
        let bytes = size_of::<T>() as f64;
        facts.ns_per_item(match self.distribution {
            Distribution::Gaussian => 2.5 * bytes,
            Distribution::Uniform => 0.25 * bytes,
        });
    }
}

/// Makes white noise without end from a seed.
#[derive(BlockParameters)]
#[block(noise_source, pure, items(cf32, f32))]
struct NoiseParameters {
    /// gaussian: of power amplitude²
    distribution: Distribution,
    /// gaussian: standard deviation; uniform: largest value
    #[parameter(default = 1.0)]
    amplitude: f32,
    /// seed of the random numbers
    #[parameter(default = 1)]
    seed: i64,
}

impl NoiseParameters {
    fn make<T: Noisy>(self) -> NoiseSource<T> {
        NoiseSource::new(self.distribution, self.amplitude, self.seed as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use millstream_flow::Mock;

    #[test]
    fn noise_has_the_power_of_its_amplitude() {
        for (distribution, expected) in
            [(Distribution::Gaussian, 4.0), (Distribution::Uniform, 8.0 / 3.0)]
        {
            let source = NoiseSource::<Sample>::new(distribution, 2.0, 5);
            let mut mock = Mock::with_room(source, 100_000);
            mock.call().unwrap();
            let out = mock.take::<Sample>("out");
            let power: f64 = out.iter().map(|x| f64::from(x.norm_sqr())).sum();
            let mean = power / out.len() as f64;
            assert!((mean / expected - 1.0).abs() < 0.02, "{distribution:?}: {mean}");
        }
    }
}
