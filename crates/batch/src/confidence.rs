//! How sure it is that the best setting is the best.
//!
//! Recordings differ more than settings do, so settings are compared recording by recording: the
//! mean of the differences and its confidence interval by Student's t-distribution, as if the
//! recordings were drawn at random from those that will come. With few recordings it is wide. The
//! best of many settings is compared with each other one; the intervals are so wide that all of
//! them hold at once in 19 of 20 cases (Bonferroni).

use crate::Best;
use millstream_stats::Mean;
use serde::Serialize;

/// The share of cases in which an interval, or one of several, does not hold.
const WRONG: f64 = 0.05;
/// Recordings that it takes at least to be sure.
const LEAST: usize = 5;

/// The best setting compared with another one.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Confidence {
    /// The other setting.
    pub next: String,
    /// By how much the best one is better, the mean over the recordings that both have; negative if
    /// it is worse on these.
    pub better_by: f64,
    /// The confidence interval is this to either side; `None` with fewer than two recordings.
    pub half_width: Option<f64>,
    /// The recordings that both have.
    pub recordings: usize,
}

impl Confidence {
    /// Compares the values of the best setting with those of each other one, by recording, and
    /// returns the comparison that is the least sure, and the position of its setting; `None`
    /// without another one. `None` for a value stands for no value.
    #[must_use]
    pub fn weakest(
        best: Best,
        a: &[Option<f64>],
        others: &[&[Option<f64>]],
    ) -> Option<(usize, Self)> {
        let sign = if best.prefers(1.0, 0.0) { 1.0 } else { -1.0 };
        let wrong = WRONG / others.len().max(1) as f64;
        let compared = others.iter().map(|b| {
            let pairs = a.iter().zip(*b);
            let differences: Vec<f64> = pairs
                .filter_map(|(a, b)| Some(sign * ((*a)? - (*b)?)))
                .filter(|d| d.is_finite())
                .collect();
            let mean = Mean::of(&differences);
            let half_width = mean.half_width(wrong);
            Self { next: String::new(), better_by: mean.mean, half_width, recordings: mean.count }
        });
        compared.enumerate().min_by(|(_, a), (_, b)| a.strength().total_cmp(&b.strength()))
    }

    /// The difference in half widths of the interval; without enough recordings not over 1.
    fn strength(&self) -> f64 {
        let most = if self.has_enough() { f64::MAX } else { 1.0 };
        self.half_width
            .filter(|half| *half > 0.0)
            .map_or(0.0, |half| self.better_by / half)
            .min(most)
    }

    /// Whether there are enough recordings that both have.
    #[must_use]
    pub fn has_enough(&self) -> bool {
        self.recordings >= LEAST
    }

    /// Whether it is better by more than chance explains in 19 of 20 cases.
    #[must_use]
    pub fn is_sure(&self) -> bool {
        self.has_enough() && self.half_width.is_some_and(|half| half > 0.0 && self.better_by > half)
    }

    /// Whether it is worse by more than chance explains in 19 of 20 cases.
    #[must_use]
    pub fn is_surely_worse(&self) -> bool {
        self.has_enough()
            && self.half_width.is_some_and(|half| half > 0.0 && -self.better_by > half)
    }
}

/// Returns half the width of the 95 % confidence interval of the mean of some numbers.
#[must_use]
pub(crate) fn half_width(numbers: &[f64]) -> Option<f64> {
    Mean::of(numbers).half_width(WRONG)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn some(values: &[f64]) -> Vec<Option<f64>> {
        values.iter().map(|x| Some(*x)).collect()
    }

    #[test]
    fn settings_are_compared_on_the_recordings_that_both_have() {
        // Recordings differ by 10, settings by 1: that is sure.
        let a = some(&[11.0, 21.1, 31.0, 41.2, 51.1]);
        let b = some(&[10.0, 20.0, 30.1, 40.0, 50.0]);
        let of = |b: &[Option<f64>]| Confidence::weakest(Best::Highest, &a, &[b]).unwrap().1;
        let sure = of(&b);
        assert!(sure.is_sure() && (sure.better_by - 1.06).abs() < 1e-9, "{sure:?}");
        let chance = of(&some(&[9.0, 23.0, 28.0, 44.0, 50.0]));
        assert!(!chance.is_sure() && chance.recordings == 5, "{chance:?}");
        let four = of(&b[..4]);
        assert!(!four.is_sure() && !four.has_enough(), "{four:?}");
        let one = of(&[Some(3.0), None, None, None]);
        assert_eq!((one.recordings, one.half_width, one.is_sure()), (1, None, false));
        let same = of(&some(&[10.0, 20.1, 30.0, 40.2, 50.1]));
        assert!(!same.is_surely_worse(), "{same:?}");
        let lowest = Confidence::weakest(Best::Lowest, &b, &[&a]).unwrap().1;
        assert!(lowest.is_sure() && lowest.better_by > 0.0, "{lowest:?}");
        let worse = Confidence::weakest(Best::Lowest, &a, &[&b]).unwrap().1;
        assert!(worse.is_surely_worse() && !worse.is_sure(), "{worse:?}");
    }

    #[test]
    fn the_least_sure_of_all_comparisons_is_told() {
        let a = some(&[11.0, 21.1, 31.0, 41.2, 51.1]);
        let b = some(&[10.0, 20.0, 30.1, 40.0, 50.0]);
        // Worse by more, and by chance.
        let c = some(&[9.0, 23.0, 18.0, 44.0, 30.0]);
        let none = vec![None; 5];
        let of = |others: &[&[Option<f64>]]| Confidence::weakest(Best::Highest, &a, others);
        let (at, found) = of(&[&b, &c, &b]).unwrap();
        assert!(at == 1 && !found.is_sure(), "{found:?}");
        assert_eq!(of(&[&b, &c, &none]).unwrap().1.recordings, 0);
        assert_eq!(of(&[]), None);
        // The more settings, the wider.
        let widths = [1, 20].map(|count| of(&vec![&b[..]; count]).unwrap().1.half_width);
        assert!(widths[1] > widths[0], "{widths:?}");
    }
}
