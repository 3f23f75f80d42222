//! The tail beyond what was seen: an estimate of the largest latency to come, with its uncertainty.
//!
//! The largest values of equal blocks follow, for large blocks, a generalised extreme value
//! distribution (Coles, *An Introduction to Statistical Modeling of Extreme Values*, 2001, chapter
//! 3). It is fitted by L-moments (Hosking, Wallis, Wood, *Technometrics* 27, 1985, equations 9 to
//! 14), which bear heavy tails better than least squares or likelihood in samples of this size. The
//! interval comes from a parametric bootstrap: as many maxima are drawn from the fit, and fitted
//! anew, many times. Blocks, and not single values beyond a threshold, because late wake-ups come
//! in bursts: the largest of a block is one event.
//!
//! Latencies are a mixture: most wake-ups meet nothing, few meet an interrupt. The maxima of blocks
//! in which such a meeting is rare follow no single distribution, so blocks are joined until theirs
//! do: the distance is Anderson and Darling's with the weight on the upper tail (Sinclair, Spurr,
//! Ahmad, *Communications in Statistics* 19, 1990), judged against those of the refits. What was
//! never seen cannot be told by any of this.

use millstream_dsp::noise::Noise;
use serde::{Deserialize, Serialize};

use crate::observed::BlockMaxima;

/// Fewer blocks say nothing about a tail.
const BLOCKS_MIN: usize = 20;
/// The largest of fewer values is no extreme one.
const BLOCK_VALUES_MIN: u64 = 128;
/// Fits that are farther off than all but this share of true ones are none.
const FIT_SHARE_MIN: f64 = 0.1;
/// Refits for an interval.
const REFITS: usize = 300;
/// Bounds of the interval, shares of the refits.
const INTERVAL: (f64, f64) = (0.025, 0.975);
/// Shapes closer to zero are treated as zero.
const SHAPE_EPSILON: f64 = 1e-6;
/// Of L-moments: beyond this heaviness the mean does not exist.
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
    /// Fits the maxima; none when there are too few, or all are alike.
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

    /// The value that the largest of `blocks` blocks does not exceed with a chance of `share`.
    #[must_use]
    pub fn largest_of(&self, blocks: f64, share: f64) -> f64 {
        self.at(-share.ln() / blocks)
    }

    /// The value that is not exceeded with a chance of exp(-y).
    fn at(&self, y: f64) -> f64 {
        let reduced =
            if self.k.abs() < SHAPE_EPSILON { -y.ln() } else { (1.0 - y.powf(self.k)) / self.k };
        self.location + self.scale * reduced
    }

    /// The chance that a value is not exceeded.
    fn share_below(&self, value: f64) -> f64 {
        let reduced = (value - self.location) / self.scale;
        let y = if self.k.abs() < SHAPE_EPSILON {
            (-reduced).exp()
        } else {
            (1.0 - self.k * reduced).max(0.0).powf(1.0 / self.k)
        };
        (-y).exp()
    }

    /// How far the maxima are from this distribution, above all the largest: Sinclair's AU².
    fn distance(&self, maxima: &[f64]) -> f64 {
        let mut sorted = maxima.to_vec();
        sorted.sort_by(f64::total_cmp);
        let n = sorted.len() as f64;
        let term = |(i, x): (usize, &f64)| {
            let below = self.share_below(*x).min(1.0 - 1e-12);
            2.0 * below + (2.0 - (2.0 * i as f64 + 1.0) / n) * (1.0 - below).ln()
        };
        n / 2.0 - sorted.iter().enumerate().map(term).sum::<f64>()
    }

    fn draw(&self, random: &mut Noise) -> f64 {
        // Above zero and below one.
        let unit = ((random.bits() >> 11) as f64 + 0.5) / (1u64 << 53) as f64;
        self.at(-unit.ln())
    }
}

/// What may be expected of values to come.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// Of so many values to come.
    pub values: u64,
    /// The largest, as likely exceeded as not, nanoseconds.
    pub largest_ns: f64,
    /// 95 % interval of it, nanoseconds: of the fit, given that the machine stays as it is.
    pub interval_ns: (f64, f64),
    /// Shape ξ of the tail (Coles): above 0 heavy, around 0 exponential, below 0 bounded.
    pub shape: f64,
    /// Blocks that it rests on.
    pub blocks: usize,
}

/// Why there is no estimate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Untold {
    /// Too few values.
    #[error("fewer than {} values", BLOCKS_MIN as u64 * BLOCK_VALUES_MIN)]
    TooFew,
    /// The maxima of blocks of any size are no sample of an extreme value distribution.
    #[error("the largest values follow no law yet: measure longer")]
    NoFit,
}

impl Estimate {
    /// Of the largest of `values` values to come.
    ///
    /// # Errors
    /// [`Untold`].
    pub fn of(blocks: &BlockMaxima, values: u64, seed: u64) -> Result<Self, Untold> {
        let mut maxima: Vec<f64> = blocks.maxima_ns.iter().map(|max| *max as f64).collect();
        let mut of_block = blocks.values_per_block;
        let mut random = Noise::new(seed);
        let mut why = Untold::TooFew;
        while maxima.len() >= BLOCKS_MIN {
            if of_block >= BLOCK_VALUES_MIN {
                if let Some(found) = Self::fitting(&maxima, of_block, values, &mut random) {
                    return Ok(found);
                }
                why = Untold::NoFit;
            }
            maxima = maxima.chunks_exact(2).map(|pair| pair[0].max(pair[1])).collect();
            of_block *= 2;
        }
        Err(why)
    }

    /// From blocks of one size; none when the maxima do not fit, or are all alike.
    fn fitting(maxima: &[f64], of_block: u64, values: u64, random: &mut Noise) -> Option<Self> {
        let fit = Gev::fit(maxima)?;
        let ahead = (values as f64 / of_block as f64).max(1.0);
        let distance = fit.distance(maxima);
        let (mut refits, mut as_far) = (Vec::new(), 0);
        for _ in 0..REFITS {
            let drawn: Vec<f64> = maxima.iter().map(|_| fit.draw(random)).collect();
            if let Some(refit) = Gev::fit(&drawn) {
                refits.push(refit.largest_of(ahead, 0.5));
                as_far += u32::from(refit.distance(&drawn) >= distance);
            }
        }
        if f64::from(as_far) < FIT_SHARE_MIN * refits.len() as f64 {
            return None;
        }
        refits.sort_by(f64::total_cmp);
        let at = |share: f64| refits.get((share * (refits.len() - 1) as f64).round() as usize);
        Some(Self {
            values,
            largest_ns: fit.largest_of(ahead, 0.5),
            interval_ns: (*at(INTERVAL.0)?, *at(INTERVAL.1)?),
            shape: -fit.k,
            blocks: maxima.len(),
        })
    }
}

/// The gamma function above 0 (Lanczos 1964, with Godfrey's coefficients for g = 7, n = 9): exact
/// to 1e-13 where it is used, from 0.01 to about 5.
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
    use crate::Observed;

    const VALUES: u64 = 50_000;
    const AHEAD: u64 = 1_000_000;

    /// The estimates of 20 samples drawn by `inverse`.
    fn estimates(values: u64, inverse: impl Fn(f64) -> f64) -> Vec<Result<Estimate, Untold>> {
        let estimate = |seed: u64| {
            let mut random = Noise::new(seed);
            let mut observed = Observed::default();
            for n in 0..values {
                let unit = ((random.bits() >> 11) as f64 + 0.5) / (1u64 << 53) as f64;
                observed.record(inverse(unit) as u64, n);
            }
            Estimate::of(&observed.blocks, AHEAD, seed)
        };
        (0..20).map(estimate).collect()
    }

    /// How many of them hold the median of the largest of [`AHEAD`] values, and how many do not.
    fn held(values: u64, inverse: impl Fn(f64) -> f64 + Copy) -> (usize, usize) {
        let truth = inverse(0.5f64.powf(1.0 / AHEAD as f64));
        let given: Vec<_> = estimates(values, inverse).into_iter().flatten().collect();
        let holds = |one: &&Estimate| (one.interval_ns.0..=one.interval_ns.1).contains(&truth);
        let held = given.iter().filter(holds).count();
        (held, given.len() - held)
    }

    #[test]
    fn the_interval_holds_the_truth_for_light_heavy_and_bounded_tails() {
        let exponential = |unit: f64| 10e3 - 5e3 * (1.0 - unit).ln();
        let pareto = |unit: f64| 10e3 * (1.0 - unit).powf(-0.2);
        let bounded = |unit: f64| 10e3 + 40e3 * (1.0 - (1.0 - unit).powf(0.25));
        for (name, (held, missed)) in [
            ("exponential", held(VALUES, exponential)),
            ("pareto", held(VALUES, pareto)),
            ("bounded", held(VALUES, bounded)),
        ] {
            assert!(held >= 15 && missed <= 4, "{name}: {held} held, {missed} missed the truth");
        }
    }

    /// A body from 4 to 6 µs, and 0.3 % of wake-ups that met something: 30 µs more on average.
    fn mixture(unit: f64) -> f64 {
        const BODY: f64 = 0.997;
        if unit < BODY {
            return 4e3 + 2e3 * unit / BODY;
        }
        6e3 - 30e3 * ((1.0 - unit) / (1.0 - BODY)).ln()
    }

    #[test]
    fn rare_late_wake_ups_give_a_true_bound_or_none() {
        let (held, missed) = held(VALUES, mixture);
        assert!(held >= 12 && missed <= 4, "{held} held, {missed} missed the truth");
        // As many as a user may ask for in a hurry: nothing is known yet.
        let few = estimates(2000, mixture);
        assert!(few.iter().all(|one| *one == Err(Untold::TooFew)), "{few:?}");
        let some = estimates(5000, mixture);
        assert!(some.iter().filter(|one| **one == Err(Untold::NoFit)).count() >= 15, "{some:?}");
    }

    #[test]
    fn a_known_distribution_is_found_again() {
        for k in [-0.3, 0.0, 0.2] {
            let truth = Gev { location: 50.0, scale: 4.0, k };
            let mut random = Noise::new(7);
            let drawn: Vec<f64> = (0..20_000).map(|_| truth.draw(&mut random)).collect();
            let fit = Gev::fit(&drawn).unwrap();
            assert!((fit.k - k).abs() < 0.03, "{fit:?}");
            assert!((fit.location - 50.0).abs() < 0.2 && (fit.scale - 4.0).abs() < 0.2, "{fit:?}");
        }
    }

    #[test]
    fn without_enough_or_different_maxima_there_is_no_estimate() {
        assert_eq!(Gev::fit(&[1.0; 19]), None);
        assert_eq!(Gev::fit(&[1.0; 100]), None);
        assert_eq!(Estimate::of(&BlockMaxima::default(), 10, 0), Err(Untold::TooFew));
    }

    #[test]
    fn gamma_at_known_places() {
        for (x, expected) in [(1.0, 1.0), (0.5, std::f64::consts::PI.sqrt()), (5.0, 24.0)] {
            assert!((gamma(x) / expected - 1.0).abs() < 1e-12, "{x}: {}", gamma(x));
        }
    }
}
