//! Whether results differ: sets of records (a kernel, an option, an earlier run) side by side, with
//! intervals, and change points along their order.
//!
//! The unit of evidence is a start of the program, or a boot: samples of one start share whatever
//! that start was dealt. A figure of a start is the median over its samples.

mod bootstrap;
mod change;
mod set;

pub use bootstrap::{Interval, ratio};
pub use change::{Change, Found, change_points};
pub use set::Set;

use std::collections::BTreeMap;

use serde::Serialize;

use crate::record::Record;
use crate::{Histogram, Summary};

/// Figures that are compared: name and quantile.
pub const FIGURES: [(&str, f64); 2] = [("p50", 0.5), ("p99", 0.99)];

/// What counts as a change.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Rule {
    /// The chance of one where there is none, for each figure that is looked at.
    pub alpha: f64,
    /// Smaller changes are no news, as a share.
    pub effect_min: f64,
    /// Of permutations and resampling.
    pub seed: u64,
}

impl Default for Rule {
    fn default() -> Self {
        Self { alpha: 0.01, effect_min: 0.1, seed: 1 }
    }
}

/// One figure of one cell through all sets.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    /// Measurement, series and load.
    pub title: String,
    /// `p50` or `p99`.
    pub figure: &'static str,
    /// Each set that has the cell, in their order.
    pub sides: Vec<Side>,
    /// Where the figure changes along the sets.
    pub changes: Vec<Change>,
}

/// What a set says of a figure.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Side {
    /// The set.
    pub label: String,
    /// Its starts.
    pub starts: usize,
    /// Median over starts, nanoseconds.
    pub figure_ns: f64,
    /// The largest of all values, nanoseconds.
    pub max_ns: u64,
    /// Over the first set's, with its 95 % interval; none for the first itself.
    pub ratio: Option<Interval>,
    /// So few starts that a clear change here could not have been told from chance.
    pub too_few: bool,
}

/// Compares sets, in their order.
#[must_use]
pub fn compare(sets: &[Set], rule: &Rule) -> Vec<Comparison> {
    let mut titles: Vec<String> = Vec::new();
    for record in sets.iter().flat_map(|set| &set.records) {
        let title = record.title();
        if !titles.contains(&title) {
            titles.push(title);
        }
    }
    let each = titles.iter().flat_map(|title| FIGURES.map(|figure| (title, figure)));
    each.map(|(title, figure)| compare_figure(sets, title, figure, rule)).collect()
}

fn compare_figure(
    sets: &[Set],
    title: &str,
    (figure, quantile): (&'static str, f64),
    rule: &Rule,
) -> Comparison {
    let of_cell = |set: &Set| -> Vec<Record> {
        set.records.iter().filter(|record| record.title() == title).cloned().collect()
    };
    let held: Vec<(&Set, Vec<Record>)> = sets
        .iter()
        .map(|set| (set, of_cell(set)))
        .filter(|(_, records)| !records.is_empty())
        .collect();
    let samples: Vec<_> = held.iter().map(|(_, records)| by_start(records, quantile)).collect();
    let starts: Vec<Vec<f64>> =
        samples.iter().map(|set| set.iter().map(|start| middle(start)).collect()).collect();
    let Found { changes, untold } = change_points(&starts, rule);
    let sides = held.iter().enumerate().map(|(index, (set, records))| Side {
        label: set.label.clone(),
        starts: starts[index].len(),
        figure_ns: middle(&starts[index]),
        max_ns: records.iter().map(|r| r.measured.observed.histogram.max_ns()).max().unwrap_or(0),
        ratio: (index > 0).then(|| ratio(&samples[0], &samples[index], rule.seed)),
        too_few: untold.contains(&index),
    });
    Comparison { title: title.to_owned(), figure, sides: sides.collect(), changes }
}

/// The figure of each sample, by the start that it belongs to.
fn by_start(records: &[Record], quantile: f64) -> Vec<Vec<f64>> {
    let mut starts: BTreeMap<(&str, &str, u32), Vec<f64>> = BTreeMap::new();
    for record in records {
        let key = (&*record.run, &*record.variant, record.restart);
        let figure = record.measured.observed.histogram.quantile_ns(quantile);
        starts.entry(key).or_default().push(figure as f64);
    }
    starts.into_values().collect()
}

fn middle(values: &[f64]) -> f64 {
    Summary::of(values).map_or(0.0, |summary| summary.median)
}

/// All values of records together.
#[must_use]
pub fn together<'r>(records: impl IntoIterator<Item = &'r Record>) -> Histogram {
    let mut all = Histogram::default();
    records.into_iter().for_each(|record| all.merge(&record.measured.observed.histogram));
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::tests::record;
    use millstream_dsp::noise::Noise;

    /// Six starts with three samples each, around `base_ns`; the starts themselves vary, too.
    fn set(label: &str, base_ns: f64, seed: u64) -> Set {
        let mut noise = Noise::new(seed);
        let mut records = Vec::new();
        for restart in 0..6 {
            let level = base_ns * f64::from(0.05 * noise.gaussian()).exp();
            for sample in 0..3 {
                let mut value = || (level * f64::from(0.2 * noise.gaussian()).exp()) as u64;
                let values: Vec<u64> = (0..300).map(|_| value()).collect();
                let one = record("timer", &values);
                let run = label.to_owned();
                records.push(Record { run, restart, sample, ..one });
            }
        }
        Set { label: label.to_owned(), records }
    }

    #[test]
    fn a_pair_that_is_alike_shows_no_change_and_a_regression_is_found() {
        let rule = Rule::default();
        let (mut found_in_alike, mut held) = (0, 0);
        for seed in 0..20 {
            let [a, b] = [set("a", 2e4, 2 * seed), set("b", 2e4, 2 * seed + 1)];
            let alike = compare(&[a.clone(), b], &rule);
            assert_eq!(alike.len(), 2);
            found_in_alike += alike.iter().filter(|figure| !figure.changes.is_empty()).count();
            let slow = set("b", 2.8e4, 2 * seed + 1);
            for figure in compare(&[a, slow], &rule) {
                let [change] = &figure.changes[..] else { panic!("seed {seed}: {figure:?}") };
                assert_eq!(change.at, 1);
                let interval = figure.sides[1].ratio.unwrap();
                held += u32::from(interval.low < 1.4 && 1.4 < interval.high);
            }
        }
        assert!(held >= 33, "{held} of 40 intervals of 95 % hold the ratio");
        assert!(found_in_alike <= 1, "{found_in_alike} of 40 figures");
    }

    #[test]
    fn the_change_is_where_the_slow_set_begins() {
        let sets: Vec<Set> = [(0, 2e4), (1, 2e4), (2, 2e4), (3, 22e4), (4, 22e4)]
            .map(|(seed, base)| set(&format!("kernel {seed}"), base, seed))
            .into();
        for figure in compare(&sets, &Rule::default()) {
            let at: Vec<_> = figure.changes.iter().map(|change| change.at).collect();
            assert_eq!(at, [3], "{figure:?}");
            assert!((figure.changes[0].ratio / 11.0 - 1.0).abs() < 0.2, "{figure:?}");
        }
    }

    #[test]
    fn too_few_starts_prove_nothing_and_say_so() {
        let cut = |mut set: Set| {
            set.records.retain(|record| record.restart < 2);
            set
        };
        let sets = [cut(set("a", 2e4, 1)), cut(set("b", 9e4, 2))];
        let found = compare(&sets, &Rule::default());
        assert!(found.iter().all(|figure| figure.sides[1].too_few && figure.changes.is_empty()));
    }
}
