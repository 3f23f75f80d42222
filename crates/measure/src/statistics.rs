//! The one figure of a measurement and its precision.
//!
//! The unit of evidence is a start of the program, or a boot: values of one start share its
//! conditions. The figure of a start is the quantile of all its values together, and the figure of
//! a set of starts is the median over them ([`by_start`],
//! [`MedianEstimate`](millstream_stats::MedianEstimate)): a run, a comparison and a report show the
//! same one. `tests/coverage` counts how often an interval of 95 % holds the true value in drawn
//! cases; docs/evidence/comparisons.md has the result.

use std::collections::BTreeMap;

use crate::record::Record;
use millstream_stats::Histogram;

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::tests::record;

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
