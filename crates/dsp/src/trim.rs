//! DC offset and I/Q imbalance of samples: measurement by moments, and correction.

use crate::chunks::Chunks;
use crate::simd::madd;
use crate::{Sample, multiversion};

/// Samples processed together.
const LANES: usize = 8;

/// A correction of samples: subtraction of an offset, then the imaginary part times a gain, minus a
/// share of the real part.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Trim {
    /// The subtracted offset.
    pub offset: Sample,
    /// Gain of the imaginary part.
    pub gain: f32,
    /// The share of the real part that is subtracted from the imaginary part.
    pub cross: f32,
}

impl Default for Trim {
    fn default() -> Self {
        Self { offset: Sample::ZERO, gain: 1.0, cross: 0.0 }
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
    /// Moves all values towards `other` by a share of the distance.
    pub fn approach(&mut self, other: &Self, share: f64) {
        let step = |x: &mut f64, y: f64| *x += share * (y - *x);
        step(&mut self.re, other.re);
        step(&mut self.im, other.im);
        step(&mut self.power_re, other.power_re);
        step(&mut self.power_im, other.power_im);
        step(&mut self.product, other.product);
    }
}

/// Returns the moments of some samples.
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
    let (eights, rest) = samples.in_chunks::<LANES>();
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

#[cfg(test)]
mod tests {
    use super::*;
    use millstream_testkit::cost;

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
    #[ignore = "counted by docs/evidence/arm64_cost.py"]
    fn cost_of_the_moments() {
        let samples = [Sample::new(0.3, -0.2); 800];
        let [mut plain, mut fast] = [[[0.0; LANES]; 5]; 2];
        cost::repeat(
            || add_moments_body::<{ cost::FUSED }>(&samples, &mut plain),
            || add_moments(&samples, &mut fast),
        );
        assert!(plain != fast || plain[0][0] > 0.0);
    }
}
