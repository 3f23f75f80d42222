//! Statistics of ratios from pairs of measurements.
//!
//! A pair is two figures measured one right after the other, so that a disturbance that lasts
//! longer slows both and leaves their ratio unchanged. Ratios are handled as logarithms: twice as
//! fast and half as fast are equally far from no difference.

use crate::median;
use serde::{Deserialize, Serialize};

/// A ratio and its confidence interval.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
pub struct RatioEstimate {
    /// Best estimate.
    pub estimate: f64,
    /// Lower limit.
    pub low: f64,
    /// Upper limit; infinite where there are too few pairs.
    pub high: f64,
    /// Number of pairs.
    pub pairs: usize,
}

impl RatioEstimate {
    /// No difference, by definition: a thing compared with itself.
    pub const SAME: Self = Self { estimate: 1.0, low: 1.0, high: 1.0, pairs: 0 };

    /// Whether the ratio is above 1 beyond noise.
    #[must_use]
    pub fn is_above_one(&self) -> bool {
        self.low > 1.0
    }

    fn from_logarithms(estimate: f64, low: f64, high: f64, pairs: usize) -> Self {
        Self { estimate: estimate.exp(), low: low.exp(), high: high.exp(), pairs }
    }
}

/// Returns Hodges and Lehmann's estimate (1963): the median of the means of all pairs of values,
/// each with itself too. One outlier among seven hardly moves it, and with clean values it is
/// nearly as efficient as the mean.
#[must_use]
pub fn hodges_lehmann(values: &[f64]) -> f64 {
    median(&walsh_averages(values))
}

/// Returns the interval of the ratio with these logarithms, at `confidence` (0.95, say): Wilcoxon's
/// signed-rank test inverted (Tukey 1949), exact, with no assumption but symmetry. A confidence of
/// 95 % needs 6 pairs.
#[must_use]
pub fn paired(logarithms: &[f64], confidence: f64) -> RatioEstimate {
    let averages = walsh_averages(logarithms);
    let cut = critical_rank(logarithms.len(), (1.0 - confidence) / 2.0);
    let (low, high) = match cut {
        Some(cut) => (averages[cut], averages[averages.len() - 1 - cut]),
        None => (f64::NEG_INFINITY, f64::INFINITY),
    };
    RatioEstimate::from_logarithms(median(&averages), low, high, logarithms.len())
}

/// Returns the interval of a ratio from few pairs, where the noise of a single one is known from
/// others: two standard errors.
#[must_use]
pub fn with_noise(logarithms: &[f64], noise: f64) -> RatioEstimate {
    let (estimate, n) = (hodges_lehmann(logarithms), logarithms.len());
    let reach = 2.0 * noise / (n.max(1) as f64).sqrt();
    RatioEstimate::from_logarithms(estimate, estimate - reach, estimate + reach, n)
}

/// Returns the standard deviation of a single logarithm, from several series with unknown centres:
/// from the median difference within them, so that a spike does not count. At least `floor`.
#[must_use]
pub fn pooled_noise<'a>(series: impl IntoIterator<Item = &'a [f64]>, floor: f64) -> f64 {
    let differences: Vec<f64> = series
        .into_iter()
        .flat_map(|series| (0..series.len()).map(move |at| series.split_at(at)))
        .flat_map(|(before, rest)| before.iter().map(|one| (one - rest[0]).abs()))
        .collect();
    // Of a normal distribution, 1.4826 medians of the absolute value are a standard deviation; a
    // difference has that of both sides.
    (1.4826 * median(&differences) * std::f64::consts::FRAC_1_SQRT_2).max(floor)
}

/// Returns the sorted means of all pairs of values, each with itself too.
fn walsh_averages(values: &[f64]) -> Vec<f64> {
    let mut averages: Vec<f64> = (0..values.len())
        .flat_map(|a| (a..values.len()).map(move |b| (a, b)))
        .map(|(a, b)| values[a].midpoint(values[b]))
        .collect();
    averages.sort_by(f64::total_cmp);
    averages
}

/// Returns how many Walsh averages to leave out at either end so that the rest holds the centre
/// except for `tail` at each side; `None` if even the whole range does not suffice.
fn critical_rank(n: usize, tail: f64) -> Option<usize> {
    // Ways to reach each rank sum with any signs, as shares of all.
    let mut ways = vec![1.0];
    for rank in 1..=n {
        let mut next = vec![0.0; ways.len() + rank];
        for (sum, share) in ways.iter().enumerate() {
            next[sum] += share / 2.0;
            next[sum + rank] += share / 2.0;
        }
        ways = next;
    }
    let mut below = 0.0;
    let sums = ways.iter().take_while(|share| {
        below += **share;
        below <= tail
    });
    sums.count().checked_sub(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Random;

    /// Critical values of Wilcoxon's test, two-sided 5 % and 1 % (Wilcoxon 1947, table I).
    #[test]
    fn ranks_are_those_of_the_published_table() {
        for (n, five, one) in [
            (6, Some(0), None),
            (8, Some(3), Some(0)),
            (10, Some(8), Some(3)),
            (15, Some(25), Some(15)),
            (20, Some(52), Some(37)),
            (25, Some(89), Some(68)),
        ] {
            assert_eq!(critical_rank(n, 0.025), five, "n = {n}");
            assert_eq!(critical_rank(n, 0.005), one, "n = {n}");
        }
        assert_eq!((0..6).find_map(|n| critical_rank(n, 0.025)), None);
    }

    #[test]
    fn few_pairs_say_nothing_for_sure() {
        let interval = paired(&[0.1, 0.1, 0.1, 0.1, 0.1], 0.95);
        assert_eq!((interval.low, interval.high), (0.0, f64::INFINITY));
        assert!((interval.estimate - 0.1f64.exp()).abs() < 1e-12);
        assert!(!interval.is_above_one());
        assert!(paired(&[0.1; 6], 0.95).is_above_one());
    }

    #[test]
    fn a_wild_value_hardly_moves_the_estimate() {
        let clean = [0.010, 0.012, 0.009, 0.011, 0.010, 0.012, 0.011, 0.009];
        let mut wild = clean;
        wild[3] = -0.8;
        assert!((hodges_lehmann(&clean) - hodges_lehmann(&wild)).abs() < 0.002);
    }

    #[test]
    fn an_interval_holds_the_truth_as_often_as_it_says() {
        let (truth, trials) = (0.03, 2000);
        let mut random = Random::new(5);
        let misses = (0..trials).filter(|_| {
            let pairs: Vec<f64> = (0..10).map(|_| truth + 0.05 * random.normal()).collect();
            let interval = paired(&pairs, 0.95);
            interval.low > truth.exp() || interval.high < truth.exp()
        });
        let misses = misses.count() as f64 / f64::from(trials);
        // Exact: 1 - P(W+ <= 8) * 2 = 0.049 for n = 10; three standard errors of 2000 trials.
        assert!((misses - 0.049).abs() < 0.015, "{misses}");
    }

    #[test]
    fn noise_is_pooled_over_series_with_different_middles() {
        let mut random = Random::new(9);
        let mut series =
            |middle: f64| -> Vec<f64> { (0..3).map(|_| middle + 0.04 * random.normal()).collect() };
        let all: Vec<Vec<f64>> = (0..200).map(|i| series(f64::from(i))).collect();
        let noise = pooled_noise(all.iter().map(Vec::as_slice), 0.0);
        assert!((noise / 0.04 - 1.0).abs() < 0.15, "{noise}");
        assert_eq!(pooled_noise([&[1.0][..]], 0.002), 0.002);
    }
}
