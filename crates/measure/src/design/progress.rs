//! The figures of a run so far.

use std::collections::BTreeMap;

use serde::Serialize;

use super::plan::MeasurementPlan;
use super::variance::VarianceShares;
use crate::record::{Measured, Record};
use crate::statistics::LOOK_LEVEL;
use millstream_stats::Histogram;
use millstream_stats::{LEVEL, MedianEstimate};

/// The figures of a cell's series.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct CellProgress {
    /// Variant; may be empty.
    pub variant: String,
    /// Measurement, series and load.
    pub title: String,
    /// The plan's quantile: the median over starts, nanoseconds.
    pub figure_ns: f64,
    /// Its 95 % interval, nanoseconds; `None` with too few starts.
    pub interval_ns: Option<(f64, f64)>,
    /// Half of the interval as a share of the figure.
    pub half_width: Option<f64>,
    /// The spread within and between starts.
    pub spread: VarianceShares,
    /// The largest of all samples' maxima, nanoseconds.
    pub max_ns: u64,
    #[serde(skip)]
    starts: BTreeMap<u32, Start>,
}

/// The values of one start.
#[derive(Debug, Clone, Default, PartialEq)]
struct Start {
    /// All its values together.
    all: Histogram,
    /// The figure of each sample.
    samples: Vec<f64>,
}

/// The figures of all cells.
#[derive(Default)]
pub(super) struct RunProgress(BTreeMap<(String, String), CellProgress>);

impl RunProgress {
    pub(super) fn add(&mut self, plan: &MeasurementPlan, records: &[Record]) {
        for record in records {
            let key = (record.title(), record.variant.clone());
            let line = self.0.entry(key).or_insert_with(|| CellProgress {
                variant: record.variant.clone(),
                title: record.title(),
                ..CellProgress::default()
            });
            let Measured { observed, .. } = &record.measured;
            let figure = observed.histogram.quantile_ns(plan.quantile) as f64;
            let start = line.starts.entry(record.restart).or_default();
            start.samples.push(figure);
            start.all.merge(&observed.histogram);
            line.max_ns = line.max_ns.max(observed.histogram.max_ns());
            line.settle(plan);
        }
    }

    /// Returns half of the widest interval as a share of its figure; `None` while a cell has no
    /// interval.
    pub(super) fn widest(&self) -> Option<f64> {
        let widths = self.0.values().map(|line| line.half_width);
        widths.reduce(|one, other| Some(one?.max(other?))).flatten()
    }

    pub(super) fn lines(self) -> Vec<CellProgress> {
        self.0.into_values().collect()
    }
}

impl CellProgress {
    fn settle(&mut self, plan: &MeasurementPlan) {
        let figure = |start: &Start| start.all.quantile_ns(plan.quantile) as f64;
        let figures: Vec<f64> = self.starts.values().map(figure).collect();
        // A run that ends at narrow intervals needs a slightly higher confidence.
        let level = if plan.restarts_max > plan.restarts { LOOK_LEVEL } else { LEVEL };
        let known = MedianEstimate::of(&figures, level);
        self.figure_ns = known.map_or(0.0, |known| known.figure);
        self.interval_ns = known.and_then(|known| known.interval);
        self.half_width = known.and_then(|known| known.half_width());
        let samples: Vec<_> = self.starts.values().map(|start| start.samples.clone()).collect();
        self.spread = VarianceShares::of(&samples);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::{ChangeRule, Set, compare};
    use crate::design::plan::tests::PLAN;
    use crate::picture::short_time;
    use crate::record::tests::record;
    use crate::report::{ReportView, html};

    #[test]
    fn run_comparison_and_report_show_the_same_figure_of_the_same_run() {
        let sample = |restart: u32, sample: u32| {
            // One sample of each start has its own tail.
            let tail = if sample == 1 { 60_000 + 7_000 * u64::from(restart) } else { 0 };
            let value = |n: u64| 20_000 + 31 * n + u64::from(restart) * 500 + tail * (n / 95);
            let values: Vec<u64> = (0..100).map(value).collect();
            Record { restart, sample, ..record("timer", &values) }
        };
        let records: Vec<Record> =
            (0..7).flat_map(|start| (0..3).map(move |n| sample(start, n))).collect();
        let plan = MeasurementPlan::parse(PLAN).unwrap();
        let mut book = RunProgress::default();
        book.add(&plan, &records);
        let [line] = &book.lines()[..] else { panic!("one line") };
        let sets =
            ["a", "b"].map(|label| Set { label: label.to_owned(), records: records.clone() });
        let comparisons = compare(&sets, &ChangeRule::default());
        let p99 = comparisons.iter().find(|one| one.figure == "p99").unwrap();
        assert_eq!(p99.sides[0].figure_ns, line.figure_ns);
        assert_eq!(p99.sides[0].interval_ns, line.interval_ns);
        let (title, references) = ("", crate::reference::builtin());
        let (comparisons, failures) = (&comparisons[..], &[][..]);
        let page = html(&ReportView {
            title,
            sets: &sets[..1],
            comparisons,
            references: &references,
            failures,
        });
        let (low, high) = line.interval_ns.unwrap();
        let [figure, low, high] = [line.figure_ns, low, high].map(|ns| short_time(ns as u64));
        let cells = format!("<td>{figure}</td><td>{low} and {high}</td>");
        assert!(page.contains(&cells), "no {cells} in {page}");
    }
}
