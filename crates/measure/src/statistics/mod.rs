//! Statistics of few starts: the one figure of a measurement, its interval, ratios of two figures,
//! and tests. None of them assumes a particular distribution.
//!
//! The unit of evidence is a start of the program, or a boot: values of one start share its
//! conditions. The figure of a start is the quantile of all its values together, and the figure of
//! a set of starts is the median over them ([`by_start`], [`MedianEstimate`]): a run, a comparison
//! and a report show the same one. `tests/coverage` counts how often an interval of 95 % holds the
//! true value in drawn cases; docs/evidence/comparisons.md has the result.

mod holm;
mod median;
mod rank;

pub use holm::adjusted;
pub use median::{MedianEstimate, STARTS_MIN};
pub use rank::{Pairs, Ratio, chance, least_chance};

use std::collections::BTreeMap;

use millstream_dsp::noise::Noise;

use crate::Histogram;
use crate::record::Record;

/// The confidence of the intervals that are called 95 %.
pub const LEVEL: f64 = 0.95;

/// The confidence at each check of a run that ends when its figures are known well enough: the run
/// is more likely to end where the interval is narrow by chance, which costs one or two of a
/// hundred (`tests/coverage`).
pub const LOOK_LEVEL: f64 = 0.965;

/// Merges all values of each start, in the order of runs, variants and starts.
#[must_use]
pub fn by_start<'r>(records: impl IntoIterator<Item = &'r Record>) -> Vec<Histogram> {
    let mut starts: BTreeMap<(&str, &str, u32), Histogram> = BTreeMap::new();
    for record in records {
        let key = (&*record.run, &*record.variant, record.restart);
        starts.entry(key).or_default().merge(&record.measured.observed.histogram);
    }
    starts.into_values().collect()
}

/// Returns the figure of each start, nanoseconds.
#[must_use]
pub fn figures(starts: &[Histogram], quantile: f64) -> Vec<f64> {
    starts.iter().map(|start| start.quantile_ns(quantile) as f64).collect()
}

/// Returns logarithms: latencies spread by factors, so equal shares have equal weight.
fn logs(figures: &[f64]) -> Vec<f64> {
    figures.iter().map(|figure| figure.max(1.0).ln()).collect()
}

/// Returns ranks from 1; equal values share the middle of theirs.
pub(crate) fn ranks(values: &[f64]) -> Vec<f64> {
    let rank = |value: &f64| {
        let below = values.iter().filter(|other| *other < value).count();
        let equal = values.iter().filter(|other| *other == value).count();
        below as f64 + (equal as f64 + 1.0) / 2.0
    };
    values.iter().map(rank).collect()
}

/// Puts the items into a random order (Fisher and Yates; the bias of the remainder is below 2^-50).
pub(crate) fn shuffle<T>(items: &mut [T], random: &mut Noise) {
    for last in (1..items.len()).rev() {
        items.swap(last, (random.bits() % (last as u64 + 1)) as usize);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::tests::record;

    #[test]
    fn equal_values_share_the_middle_of_their_ranks() {
        assert_eq!(ranks(&[3.0, 1.0, 3.0]), [2.5, 1.0, 2.5]);
    }

    #[test]
    fn the_figure_of_a_start_is_that_of_all_its_values() {
        let place =
            |restart, sample, values: &[u64]| Record { restart, sample, ..record("timer", values) };
        let records = [place(1, 0, &[50, 51]), place(0, 0, &[10, 11]), place(0, 1, &[12, 40])];
        let starts = by_start(&records);
        assert_eq!(starts.iter().map(Histogram::count).collect::<Vec<_>>(), [4, 2]);
        assert_eq!(figures(&starts, 0.5), [11.0, 50.0]);
        assert_eq!(figures(&starts, 0.99), [40.0, 51.0]);
    }
}
