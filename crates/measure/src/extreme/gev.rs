//! The distribution of the largest of many values.

use millstream_stats::Random;

use super::{BLOCKS_MIN, INTERVAL, random_share};

/// Shapes closer to zero are treated as zero.
const SHAPE_EPSILON: f64 = 1e-6;
/// The lower limit of k for L-moments: with a heavier tail the mean does not exist.
const K_MIN: f64 = -0.99;

/// A generalised extreme value distribution; `k` is Hosking's shape, the negative of Coles' ξ.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Gev {
    /// Location.
    pub location: f64,
    /// Scale, above 0.
    pub scale: f64,
    /// Shape: below 0 heavy (Fréchet), 0 exponential (Gumbel), above 0 bounded (Weibull).
    pub k: f64,
}

impl Gev {
    /// Fits the maxima; `None` when there are too few, or all are equal.
    #[must_use]
    pub fn fit(maxima: &[f64]) -> Option<Self> {
        let mut sorted = maxima.to_vec();
        sorted.sort_by(f64::total_cmp);
        let n = sorted.len() as f64;
        if sorted.len() < BLOCKS_MIN {
            return None;
        }
        let (mut b0, mut b1, mut b2) = (0.0, 0.0, 0.0);
        for (j, x) in sorted.iter().enumerate() {
            let j = j as f64;
            b0 += x;
            b1 += x * j / (n - 1.0);
            b2 += x * j * (j - 1.0) / ((n - 1.0) * (n - 2.0));
        }
        let [b0, b1, b2] = [b0 / n, b1 / n, b2 / n];
        let spread = 2.0 * b1 - b0;
        if spread <= b0.abs() * 1e-9 {
            return None;
        }
        let skew = (6.0 * b2 - 6.0 * b1 + b0) / spread;
        let c = 2.0 / (3.0 + skew) - 2f64.ln() / 3f64.ln();
        let k = (7.8590 * c + 2.9554 * c * c).max(K_MIN);
        if k.abs() < SHAPE_EPSILON {
            const EULER: f64 = 0.577_215_664_901_532_9;
            let scale = spread / 2f64.ln();
            return Some(Self { location: b0 - EULER * scale, scale, k: 0.0 });
        }
        let gamma = gamma(1.0 + k);
        let scale = spread * k / ((1.0 - 2f64.powf(-k)) * gamma);
        Some(Self { location: b0 - scale * (1.0 - gamma) / k, scale, k })
    }

    /// Returns the value that the largest of `blocks` blocks does not exceed with a probability of
    /// `share`.
    #[must_use]
    pub fn largest_of(&self, blocks: f64, share: f64) -> f64 {
        self.at(-share.ln() / blocks)
    }

    /// Returns the value that is not exceeded with a probability of exp(-y).
    fn at(&self, y: f64) -> f64 {
        let reduced =
            if self.k.abs() < SHAPE_EPSILON { -y.ln() } else { (1.0 - y.powf(self.k)) / self.k };
        self.location + self.scale * reduced
    }

    /// Returns the probability that a value is not exceeded.
    fn share_below(&self, value: f64) -> f64 {
        let reduced = (value - self.location) / self.scale;
        let y = if self.k.abs() < SHAPE_EPSILON {
            (-reduced).exp()
        } else {
            (1.0 - self.k * reduced).max(0.0).powf(1.0 / self.k)
        };
        (-y).exp()
    }

    /// Predicts the largest of `blocks` blocks; `None` when values can be below 0.
    pub(super) fn ahead(&self, blocks: f64) -> Option<Ahead> {
        let [low, middle, high] =
            [INTERVAL.0, 0.5, INTERVAL.1].map(|share| self.largest_of(blocks, share));
        let ahead = Ahead { middle, up: (high / middle).ln(), down: (middle / low).ln() };
        (low > 0.0 && high.is_finite()).then_some(ahead)
    }

    /// Returns the distance of the maxima from this distribution, weighted to the largest:
    /// Sinclair's AU².
    pub(super) fn distance(&self, maxima: &[f64]) -> f64 {
        let mut sorted = maxima.to_vec();
        sorted.sort_by(f64::total_cmp);
        let n = sorted.len() as f64;
        let term = |(i, x): (usize, &f64)| {
            let below = self.share_below(*x).min(1.0 - 1e-12);
            2.0 * below + (2.0 - (2.0 * i as f64 + 1.0) / n) * (1.0 - below).ln()
        };
        n / 2.0 - sorted.iter().enumerate().map(term).sum::<f64>()
    }

    pub(super) fn draw(&self, random: &mut Random) -> f64 {
        self.at(-random_share(random).ln())
    }
}

/// The prediction of a fit for the largest value to come: its median, and the logarithms of how far
/// its interval reaches above and below, as if the fit were exact.
pub(super) struct Ahead {
    pub middle: f64,
    up: f64,
    down: f64,
}

impl Ahead {
    /// Returns the position of a value, in lengths of the upper or lower half.
    pub fn place(&self, value: f64) -> f64 {
        let off = (value / self.middle).ln();
        off / if off > 0.0 { self.up } else { self.down }
    }

    /// Returns the value at that position.
    pub fn at(&self, place: f64) -> f64 {
        self.middle * (place * if place > 0.0 { self.up } else { self.down }).exp()
    }
}

/// Returns the gamma function above 0 (Lanczos 1964, with Godfrey's coefficients for g = 7, n = 9):
/// exact to 1e-13 in the range used here, 0.01 to about 5.
fn gamma(x: f64) -> f64 {
    const G: f64 = 7.0;
    const COEFFICIENTS: [f64; 9] = [
        0.999_999_999_999_809_9,
        676.520_368_121_885_1,
        -1_259.139_216_722_402_8,
        771.323_428_777_653_1,
        -176.615_029_162_140_6,
        12.507_343_278_686_905,
        -0.138_571_095_265_720_12,
        9.984_369_578_019_572e-6,
        1.505_632_735_149_311_6e-7,
    ];
    let x = x - 1.0;
    let terms = COEFFICIENTS[1..].iter().enumerate().map(|(i, c)| c / (x + i as f64 + 1.0));
    let sum = COEFFICIENTS[0] + terms.sum::<f64>();
    let t = x + G + 0.5;
    (std::f64::consts::TAU).sqrt() * t.powf(x + 0.5) * (-t).exp() * sum
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `scipy.stats.genextreme` (1.17), whose shape is this one: quantiles and `cdf(58)` with
    /// location 50 and scale 4.
    #[test]
    fn the_distribution_is_the_one_of_scipy() {
        for (k, quantiles, below) in [
            (
                -0.3,
                [45.679_687_969_661_7, 51.549_687_795_084_1, 76.837_506_005_929_3],
                0.811_608_418_650_484,
            ),
            (
                0.0,
                [44.778_709_036_147_1, 51.466_051_682_326_7, 64.704_989_031_816_7],
                0.873_423_018_493_117,
            ),
            (
                0.2,
                [44.033_770_672_245_8, 51.413_608_197_367_9, 60.412_282_790_140_5],
                0.925_186_444_647_017,
            ),
        ] {
            let gev = Gev { location: 50.0, scale: 4.0, k };
            for (share, expected) in [0.025, 0.5, 0.975].into_iter().zip(quantiles) {
                let found = gev.largest_of(1.0, share);
                assert!((found - expected).abs() < 1e-9, "{k} {share}: {found} {expected}");
            }
            assert!((gev.share_below(58.0) - below).abs() < 1e-12, "{k}");
        }
    }

    #[test]
    fn a_known_distribution_is_found_again() {
        for k in [-0.3, 0.0, 0.2] {
            let truth = Gev { location: 50.0, scale: 4.0, k };
            let mut random = Random::new(7);
            let drawn: Vec<f64> = (0..20_000).map(|_| truth.draw(&mut random)).collect();
            let fit = Gev::fit(&drawn).unwrap();
            assert!((fit.k - k).abs() < 0.03, "{fit:?}");
            assert!((fit.location - 50.0).abs() < 0.2 && (fit.scale - 4.0).abs() < 0.2, "{fit:?}");
        }
    }

    #[test]
    fn gamma_at_known_places() {
        for (x, expected) in [(1.0, 1.0), (0.5, std::f64::consts::PI.sqrt()), (5.0, 24.0)] {
            assert!((gamma(x) / expected - 1.0).abs() < 1e-12, "{x}: {}", gamma(x));
        }
    }
}
