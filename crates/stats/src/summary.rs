//! A summary of repeated figures.

use serde::Serialize;

/// Smallest, middle and largest of repeated figures.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Summary {
    /// The smallest.
    pub min: f64,
    /// The middle one; with an even number, the mean of both.
    pub median: f64,
    /// The largest.
    pub max: f64,
    /// The number of figures.
    pub count: usize,
}

/// Returns the middle one of some values, or the mean of both; 0 without any.
#[must_use]
pub fn median(values: &[f64]) -> f64 {
    Summary::of(values).map_or(0.0, |summary| summary.median)
}

impl Summary {
    /// Summarises figures; `None` without any.
    pub fn of(figures: &[f64]) -> Option<Self> {
        let mut sorted = figures.to_vec();
        sorted.sort_by(f64::total_cmp);
        let (count, half) = (sorted.len(), sorted.len() / 2);
        let (&min, &max) = (sorted.first()?, sorted.last()?);
        let below = sorted[if count % 2 == 0 { half - 1 } else { half }];
        Some(Self { min, median: (below + sorted[half]) / 2.0, max, count })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_is_the_median() {
        assert_eq!(Summary::of(&[]), None);
        let of = |figures: &[f64]| {
            let summary = Summary::of(figures).unwrap();
            (summary.min, summary.median, summary.max)
        };
        assert_eq!(of(&[3.0]), (3.0, 3.0, 3.0));
        assert_eq!(of(&[9.0, 1.0, 2.0]), (1.0, 2.0, 9.0));
        assert_eq!(of(&[4.0, 1.0, 2.0, 9.0]), (1.0, 3.0, 9.0));
    }
}
