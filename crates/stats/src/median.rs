//! The precision of the median over starts.

use serde::Serialize;

use crate::{logs, median};

/// The fewest starts for an interval of 95 %: with five, their smallest and largest hold the true
/// median in 94 of 100 cases at most.
pub const STARTS_MIN: usize = 6;

/// The median over starts, and its interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct MedianEstimate {
    /// The median of the starts' own figures.
    pub figure: f64,
    /// The interval of the median; `None` with fewer than [`STARTS_MIN`].
    pub interval: Option<(f64, f64)>,
}

impl MedianEstimate {
    /// Estimates from the starts' figures. The interval lies between two of them, by the number of
    /// starts that fall below the true median, which is binomial for any distribution; between the
    /// two pairs with a slightly higher and a slightly lower coverage, it is interpolated
    /// (Hettmansperger, Sheather, *Statistics & Probability Letters* 4, 1986). `None` without any
    /// figure.
    #[must_use]
    pub fn of(figures: &[f64], level: f64) -> Option<Self> {
        if figures.is_empty() {
            return None;
        }
        let figure = median(figures);
        let mut sorted = logs(figures);
        sorted.sort_by(f64::total_cmp);
        let interval = between(&sorted, level).map(|(low, high)| (low.exp(), high.exp()));
        Some(Self { figure, interval })
    }

    /// Returns half of the interval's width as a share of the figure.
    #[must_use]
    pub fn half_width(&self) -> Option<f64> {
        self.interval.map(|(low, high)| (high - low) / 2.0 / self.figure.max(1.0))
    }
}

fn between(sorted: &[f64], level: f64) -> Option<(f64, f64)> {
    let n = sorted.len();
    // Pairs from the outermost one inwards, each with the probability that it holds the median.
    let (mut holds, mut outer) = (1.0, None);
    // The logarithm of the probability that exactly so many starts fall below the median.
    let mut below = -(n as f64) * 2f64.ln();
    for pair in 0..n / 2 {
        holds -= 2.0 * below.exp();
        below += ((n - pair) as f64 / (pair + 1) as f64).ln();
        let (low, high) = (sorted[pair], sorted[n - 1 - pair]);
        if holds >= level {
            outer = Some((low, high, holds));
            continue;
        }
        let (far_low, far_high, holds_more) = outer?;
        let share = (holds_more - level) / (holds_more - holds);
        let (all, inner) = (n as f64, pair as f64);
        let inwards = (all - inner) * share / (inner + (all - 2.0 * inner) * share);
        let lean = |from: f64, to: f64| from + (to - from) * inwards;
        return Some((lean(far_low, low), lean(far_high, high)));
    }
    outer.map(|(low, high, _)| (low, high))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_starts_say_nothing_and_many_say_more() {
        assert_eq!(MedianEstimate::of(&[], 0.95), None);
        for count in 1..STARTS_MIN {
            let figures: Vec<f64> = (1..=count).map(|n| n as f64).collect();
            let known = MedianEstimate::of(&figures, 0.95).unwrap();
            assert_eq!((known.interval, known.half_width()), (None, None), "{count} starts");
        }
        let known = |count: u32| {
            let figures: Vec<f64> = (0..count).map(|n| 1e3 + f64::from(n % 7)).collect();
            MedianEstimate::of(&figures, 0.95).unwrap()
        };
        let (few, many) = (known(6), known(60));
        let (low, high) = few.interval.unwrap();
        assert!((1e3..few.figure).contains(&low) && (few.figure..=1005.0).contains(&high));
        assert!(many.half_width().unwrap() < few.half_width().unwrap());
        let alike = MedianEstimate::of(&[500.0; 8], 0.95).unwrap();
        let (low, high) = alike.interval.unwrap();
        assert!((low - 500.0).abs() < 1e-9 && (high - 500.0).abs() < 1e-9, "{alike:?}");
    }

    /// The chances of the pairs are those of `scipy.stats.binom` (1.17): for ten starts the second
    /// and the last but one hold the median with 1 - 2 binom.cdf(1, 10, 0.5) = 0.978515625, the
    /// third ones with 0.890625; Hettmansperger and Sheather's share between them is
    /// 8 i / (2 + 6 i) of the way, i = (0.978515625 - 0.95) / (0.978515625 - 0.890625).
    #[test]
    fn the_interval_of_ten_lies_between_the_second_and_the_third() {
        let figures: Vec<f64> = (1..=10).map(|n| f64::from(n).exp()).collect();
        let (low, high) = MedianEstimate::of(&figures, 0.95).unwrap().interval.unwrap();
        let share = (0.978_515_625 - 0.95) / (0.978_515_625 - 0.890_625);
        let inwards = 8.0 * share / (2.0 + 6.0 * share);
        assert!((low.ln() - (2.0 + inwards)).abs() < 1e-9, "{low}");
        assert!((high.ln() - (9.0 - inwards)).abs() < 1e-9, "{high}");
    }
}
