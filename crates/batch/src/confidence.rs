//! How sure it is that the best setting is the best.
//!
//! Recordings differ more than settings do, so settings are compared recording by recording: the
//! mean of the differences and its 95 % confidence interval by Student's t-distribution, as if the
//! recordings were drawn at random from those that will come. With few recordings it is wide.

use crate::Best;
use serde::Serialize;

/// The 97.5 % quantiles of Student's t-distribution for 1 to 30 degrees of freedom.
const STUDENT: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
    2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056,
    2.052, 2.048, 2.045, 2.042,
];
/// That of the normal distribution.
const NORMAL: f64 = 1.960;

/// The best setting compared with the next best.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Confidence {
    /// The next best setting, in words.
    pub next: String,
    /// By how much the best one is better, the mean over the recordings that both have; negative if
    /// it is worse on these.
    pub better_by: f64,
    /// The 95 % confidence interval is this to either side; `None` with fewer than two recordings.
    pub half_width: Option<f64>,
    /// The recordings that both have.
    pub recordings: usize,
}

impl Confidence {
    /// Compares the values of the best setting with those of the next by recording; `None` stands
    /// for no value.
    #[must_use]
    pub fn of(best: Best, next: String, (a, b): (&[Option<f64>], &[Option<f64>])) -> Self {
        let sign = if best.prefers(1.0, 0.0) { 1.0 } else { -1.0 };
        let pairs = a.iter().zip(b);
        let differences: Vec<f64> = pairs
            .filter_map(|(a, b)| Some(sign * ((*a)? - (*b)?)))
            .filter(|d| d.is_finite())
            .collect();
        let (mean, half_width) = interval(&differences);
        Self { next, better_by: mean, half_width, recordings: differences.len() }
    }

    /// Whether the difference is larger than chance explains in 19 of 20 cases.
    #[must_use]
    pub fn is_sure(&self) -> bool {
        self.half_width.is_some_and(|half| self.better_by > half)
    }
}

/// Returns the mean of some numbers and half the width of its 95 % confidence interval.
#[must_use]
pub(crate) fn interval(numbers: &[f64]) -> (f64, Option<f64>) {
    let count = numbers.len() as f64;
    let mean = numbers.iter().sum::<f64>() / count.max(1.0);
    let Some(freedom) = numbers.len().checked_sub(1).filter(|freedom| *freedom > 0) else {
        return (mean, None);
    };
    let square = numbers.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>();
    let error = (square / freedom as f64 / count).sqrt();
    let quantile = STUDENT.get(freedom - 1).copied().unwrap_or(NORMAL);
    (mean, Some(quantile * error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_is_that_of_the_tables() {
        // Mean 3, standard deviation √2.5, five numbers.
        let (mean, half) = interval(&[1.0, 2.0, 3.0, 4.0, 5.0]);
        assert!((mean - 3.0).abs() < 1e-12);
        assert!((half.unwrap() - 2.776 * (2.5f64 / 5.0).sqrt()).abs() < 1e-9);
        assert_eq!(interval(&[7.0]), (7.0, None));
        assert_eq!(interval(&[]), (0.0, None));
        assert_eq!(interval(&[2.0; 40]), (2.0, Some(0.0)));
    }

    #[test]
    fn settings_are_compared_on_the_recordings_that_both_have() {
        let some = |values: &[f64]| values.iter().map(|x| Some(*x)).collect::<Vec<_>>();
        // Recordings differ by 10, settings by 1: that is sure.
        let (a, b) = (some(&[11.0, 21.1, 31.0, 41.2]), some(&[10.0, 20.0, 30.1, 40.0]));
        let of = |b: &[Option<f64>]| Confidence::of(Best::Highest, "b".to_owned(), (&a, b));
        let sure = of(&b);
        assert!(sure.is_sure() && (sure.better_by - 1.05).abs() < 1e-9, "{sure:?}");
        let chance = of(&some(&[9.0, 23.0, 28.0, 44.0]));
        assert!(!chance.is_sure() && chance.recordings == 4, "{chance:?}");
        let one = of(&[Some(3.0), None, None, None]);
        assert_eq!((one.recordings, one.half_width, one.is_sure()), (1, None, false));
        let lowest = Confidence::of(Best::Lowest, "b".to_owned(), (&b, &a));
        assert!(lowest.is_sure() && lowest.better_by > 0.0, "{lowest:?}");
    }
}
