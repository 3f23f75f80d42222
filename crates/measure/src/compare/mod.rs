//! Comparison of sets of records (a kernel, an option, an earlier run) with each other.
//!
//! Sets without an order, the variants of a run, are each compared with the first, the base. Three
//! or more runs of the same variant follow each other in time: for them the comparison searches the
//! places where the figure changes ([`change_points`]). One table has one rate of error, for all
//! figures, loads and sets in it (Holm). [`statistics`](crate::statistics) defines the figures and
//! tests.

mod change;
mod set;
mod table;

pub use change::{Change, ChangePoints, change_points};
pub use set::Set;

use std::collections::BTreeSet;

use serde::Serialize;

use crate::record::{Record, each_once};
use crate::statistics::{by_start, figures};
use millstream_stats::{Histogram, Summary};
use millstream_stats::{LEVEL, MedianEstimate, Pairs, Ratio};
use table::Tests;

/// The compared figures: name, quantile, and the least number of values of each start. Of fewer
/// than a hundred values the 99th percentile is the largest one, and a figure that says nothing
/// takes from the others the chance to show a change.
const FIGURES: [(&str, f64, u64); 2] = [("p50", 0.5, 1), ("p99", 0.99, 100)];

/// The rule that decides what counts as a change.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ChangeRule {
    /// The probability of any change in a whole table without a true difference.
    pub alpha: f64,
    /// The smallest reported change, as a share.
    pub effect_min: f64,
    /// The seed of the permutations.
    pub seed: u64,
}

impl Default for ChangeRule {
    fn default() -> Self {
        Self { alpha: 0.05, effect_min: 0.1, seed: 1 }
    }
}

/// The relation between the sets of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum SetOrder {
    /// Each set is compared with the first.
    Base,
    /// The sets follow each other in time.
    Time,
}

/// One figure of one cell through the sets of a comparison.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    /// Measurement, series and load.
    pub title: String,
    /// `p50` or `p99`.
    pub figure: &'static str,
    /// The relation between the sets.
    pub order: SetOrder,
    /// Each set, in order; the first is the base, also when it has no such cell.
    pub sides: Vec<SetFigures>,
    /// The sets where the figure differs from the base, or the changes in time.
    pub changes: Vec<Change>,
}

/// The figures of one set.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SetFigures {
    /// The label of the set.
    pub label: String,
    /// The number of starts; 0 when the set has no such cell.
    pub starts: usize,
    /// Median over starts, nanoseconds.
    pub figure_ns: f64,
    /// The 95 % interval of the median; `None` with too few starts.
    pub interval_ns: Option<(f64, f64)>,
    /// The largest of all values, nanoseconds.
    pub max_ns: u64,
    /// The ratio to the base; `None` for the base itself, and where either has no such cell.
    pub ratio: Option<Ratio>,
    /// Whether the starts are too few to distinguish a clear change from chance.
    pub too_few: bool,
}

impl SetFigures {
    /// Describes the result against the base in words; the side has this `index` in the comparison.
    #[must_use]
    pub fn beside_base(&self, index: usize) -> String {
        match self.ratio {
            Some(ratio) => ratio.to_string(),
            None if self.starts == 0 => "not measured".to_owned(),
            None if index == 0 => "base".to_owned(),
            None => "the base was not measured: no comparison".to_owned(),
        }
    }
}

/// One figure of one cell, and the figures of each set's starts.
struct Cell<'s> {
    title: &'s str,
    figure: &'static str,
    order: SetOrder,
    sets: Vec<(&'s Set, Vec<f64>, u64)>,
}

/// Compares sets, in their order.
#[must_use]
pub fn compare(sets: &[Set], rule: &ChangeRule) -> Vec<Comparison> {
    let titles = each_once(sets.iter().flat_map(|set| &set.records).map(Record::title));
    let sequences = sequences(sets);
    let mut cells = Vec::new();
    for title in &titles {
        for (order, members) in &sequences {
            cells.extend(cells_of(title, *order, members));
        }
    }
    let mut pairs = Pairs::default();
    let sides: Vec<Vec<SetFigures>> = cells.iter().map(|cell| sides(cell, &mut pairs)).collect();
    let tests = Tests::of(&cells, rule);
    let found = (0..).zip(cells.iter().zip(sides));
    found.map(|(index, (cell, sides))| tests.comparison(index, cell, sides, rule)).collect()
}

/// Groups the sets: runs of a variant in time, where each variant was run three times or more, else
/// all sets with the first as base.
fn sequences(sets: &[Set]) -> Vec<(SetOrder, Vec<&Set>)> {
    let mut by_variant: Vec<(&str, Vec<&Set>)> = Vec::new();
    for set in sets {
        match by_variant.iter_mut().find(|(variant, _)| *variant == set.variant()) {
            Some((_, members)) => members.push(set),
            None => by_variant.push((set.variant(), vec![set])),
        }
    }
    let are_runs = |members: &[&Set]| {
        let runs: BTreeSet<&str> = members.iter().map(|set| set.run()).collect();
        runs.len() == members.len() && members.len() > 2
    };
    if by_variant.iter().all(|(_, members)| are_runs(members)) {
        return by_variant.into_iter().map(|(_, members)| (SetOrder::Time, members)).collect();
    }
    vec![(SetOrder::Base, sets.iter().collect())]
}

/// Returns the figures of a cell, as far as all starts have values for them; none when no set has
/// the cell.
fn cells_of<'s>(title: &'s str, order: SetOrder, members: &[&'s Set]) -> Vec<Cell<'s>> {
    let of_cell = |set: &&'s Set| {
        let records: Vec<&Record> =
            set.records.iter().filter(|record| record.title() == title).collect();
        (*set, by_start(records.iter().copied()), largest_ns(&records))
    };
    let held: Vec<_> = members.iter().map(of_cell).collect();
    if held.iter().all(|(_, starts, _)| starts.is_empty()) {
        return Vec::new();
    }
    let least = held.iter().flat_map(|(_, starts, _)| starts.iter().map(Histogram::count)).min();
    let has_enough = |figure: &(_, _, u64)| least.is_some_and(|values| values >= figure.2);
    let cell = |(figure, quantile, _)| {
        let of_set = |(set, starts, max_ns): &(&'s Set, Vec<Histogram>, u64)| {
            (*set, figures(starts, quantile), *max_ns)
        };
        Cell { title, figure, order, sets: held.iter().map(of_set).collect() }
    };
    FIGURES.into_iter().filter(has_enough).map(cell).collect()
}

fn largest_ns(records: &[&Record]) -> u64 {
    records.iter().map(|one| one.measured.observed.histogram.max_ns()).max().unwrap_or(0)
}

fn sides(cell: &Cell<'_>, pairs: &mut Pairs) -> Vec<SetFigures> {
    let base = cell.sets.first().map_or(&[][..], |(_, base, _)| base);
    let side = |(index, (set, starts, max_ns)): (usize, &(&Set, Vec<f64>, u64))| {
        let known = MedianEstimate::of(starts, LEVEL);
        let is_pair = index > 0 && !base.is_empty() && !starts.is_empty();
        SetFigures {
            label: set.label.clone(),
            starts: starts.len(),
            figure_ns: known.map_or(0.0, |known| known.figure),
            interval_ns: known.and_then(|known| known.interval),
            max_ns: *max_ns,
            ratio: is_pair.then(|| pairs.ratio(base, starts)),
            too_few: false,
        }
    };
    cell.sets.iter().enumerate().map(side).collect()
}

fn middle(values: &[f64]) -> f64 {
    Summary::of(values).map_or(0.0, |summary| summary.median)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::tests::record;
    use millstream_stats::Random;

    /// Returns six starts with three samples each, around `base_ns`; the starts vary, too.
    fn set(label: &str, base_ns: f64, seed: u64) -> Set {
        let mut noise = Random::new(seed);
        let mut records = Vec::new();
        for restart in 0..6 {
            let level = base_ns * (0.05 * noise.normal()).exp();
            for sample in 0..3 {
                let mut value = || (level * (0.2 * noise.normal()).exp()) as u64;
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
        let rule = ChangeRule::default();
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
                let (low, high) = figure.sides[1].ratio.unwrap().interval.unwrap();
                held += u32::from(low < 1.4 && 1.4 < high);
            }
        }
        assert!(held >= 35, "{held} of 40 intervals of 95 % hold the ratio");
        assert!(found_in_alike <= 1, "{found_in_alike} of 40 figures");
    }

    #[test]
    fn the_change_is_where_the_slow_run_begins() {
        let sets: Vec<Set> = [(0, 2e4), (1, 2e4), (2, 2e4), (3, 22e4), (4, 22e4)]
            .map(|(seed, base)| set(&format!("night {seed}"), base, seed))
            .into();
        for figure in compare(&sets, &ChangeRule::default()) {
            assert_eq!(figure.order, SetOrder::Time);
            let at: Vec<_> = figure.changes.iter().map(|change| change.at).collect();
            assert_eq!(at, [3], "{figure:?}");
            assert!((figure.changes[0].ratio / 11.0 - 1.0).abs() < 0.2, "{figure:?}");
        }
    }

    /// Returns the set of one run's variant.
    fn variant(label: &str, base_ns: f64, seed: u64) -> Set {
        let mut set = set("kernels", base_ns, seed);
        set.records.iter_mut().for_each(|record| label.clone_into(&mut record.variant));
        Set { label: label.to_owned(), ..set }
    }

    #[test]
    fn variants_are_compared_with_the_base_whatever_their_order() {
        // Two equally faster kernels and one slower kernel, among unchanged ones.
        let kernels = [("6.1", 3.3e4), ("6.1-rt", 3.3e4), ("6.12", 2.5e4), ("6.12-rt", 2.5e4)];
        let all: Vec<Set> = (1..)
            .zip(kernels.into_iter().chain([("late", 11e4)]))
            .map(|(seed, (label, base))| variant(label, base, seed))
            .collect();
        let verdicts = |order: [usize; 5]| {
            let sets = order.map(|index| all[index].clone());
            let mut found = Vec::new();
            for figure in compare(&sets, &ChangeRule::default()) {
                assert_eq!(figure.order, SetOrder::Base);
                for change in figure.changes {
                    let side = &figure.sides[change.at];
                    assert_eq!(change.ratio, side.ratio.unwrap().estimate);
                    found.push((figure.figure, side.label.clone(), change.ratio, change.p));
                }
            }
            found.sort_by(|a, b| (a.0, &a.1).cmp(&(b.0, &b.1)));
            found
        };
        let found = verdicts([0, 1, 2, 3, 4]);
        let names: Vec<_> = found.iter().map(|one| (one.0, &*one.1)).collect();
        let quick_and_late = ["6.12", "6.12-rt", "late"];
        assert_eq!(names, FIGURES.map(|(p, ..)| quick_and_late.map(|name| (p, name))).concat());
        assert!(found.iter().all(|one| one.3 <= 0.05 && one.3 >= 2.0 / 924.0), "{found:?}");
        assert_eq!(verdicts([0, 4, 3, 1, 2]), found);
    }

    #[test]
    fn a_table_in_which_nothing_differs_rarely_shows_a_change() {
        let mut noise = Random::new(9);
        let none = Set { label: String::new(), records: Vec::new() };
        let mut wrong = 0;
        let rule = ChangeRule { effect_min: 0.0, ..ChangeRule::default() };
        for _ in 0..200 {
            let mut start = |_| (0.1 * noise.normal()).exp() * 1e4;
            let mut starts = || -> Vec<f64> { (0..6).map(&mut start).collect() };
            let mut cell = |_| {
                let sets = vec![(&none, starts(), 0), (&none, starts(), 0)];
                Cell { title: "", figure: "p50", order: SetOrder::Base, sets }
            };
            let cells: Vec<Cell<'_>> = (0..20).map(&mut cell).collect();
            let tests = Tests::of(&cells, &rule);
            let mut pairs = Pairs::default();
            let is_change = |(index, cell): (usize, &Cell<'_>)| {
                let of_cell = tests.comparison(index, cell, sides(cell, &mut pairs), &rule);
                !of_cell.changes.is_empty()
            };
            wrong += u32::from(cells.iter().enumerate().any(is_change));
        }
        // The rule allows 1 in 20; with 40 tests at 1 in 100 each, one in three tables would be
        // wrong.
        assert!((1..=18).contains(&wrong), "{wrong} of 200 tables show a change");
    }

    #[test]
    fn a_cell_that_the_base_lacks_is_compared_with_nothing() {
        let named = |mut set: Set, name: &str| {
            set.records.iter_mut().for_each(|record| name.clone_into(&mut record.name));
            set
        };
        let mut both = variant("b", 9e4, 2);
        both.records.extend(named(variant("b", 9e4, 3), "udp").records);
        let sets = [variant("a", 2e4, 1), both, named(variant("c", 2e4, 4), "udp")];
        let found = compare(&sets, &ChangeRule::default());
        let udp: Vec<_> = found.iter().filter(|figure| figure.title.starts_with("udp")).collect();
        assert_eq!(udp.len(), 2);
        for figure in udp {
            let starts: Vec<_> = figure.sides.iter().map(|side| side.starts).collect();
            assert_eq!(starts, [0, 6, 6], "the base stays where it is");
            assert!(figure.changes.is_empty(), "{figure:?}");
            assert!(figure.sides.iter().all(|side| side.ratio.is_none()), "{figure:?}");
        }
        let timer = found.iter().find(|figure| figure.title.starts_with("timer")).unwrap();
        assert_eq!((timer.changes.len(), timer.changes[0].at, timer.sides[2].starts), (1, 1, 0));
    }

    #[test]
    fn a_percentile_is_compared_where_each_start_has_values_for_it() {
        let few = |mut set: Set, values: &[u64]| {
            let histogram = record("timer", values).measured.observed.histogram;
            set.records[0].measured.observed.histogram = histogram;
            // The start has no other samples.
            set.records.retain(|record| record.restart > 0 || record.sample == 0);
            set
        };
        let figures = |values: usize| {
            let sets = [set("a", 2e4, 1), few(set("b", 9e4, 2), &vec![90_000; values])];
            let found = compare(&sets, &ChangeRule::default());
            found.iter().map(|one| one.figure).collect::<Vec<_>>()
        };
        assert_eq!((figures(99), figures(100)), (vec!["p50"], vec!["p50", "p99"]));
    }

    #[test]
    fn too_few_starts_prove_nothing_and_say_so() {
        let cut = |mut set: Set, starts: u32| {
            set.records.retain(|record| record.restart < starts);
            set
        };
        let of = |starts: u32| {
            let sets = [cut(set("a", 2e4, 1), starts), cut(set("b", 9e4, 2), starts)];
            compare(&sets, &ChangeRule::default())
        };
        for figure in of(2) {
            assert!(figure.sides[1].too_few && figure.changes.is_empty(), "{figure:?}");
            assert_eq!(figure.sides[1].ratio.unwrap().interval, None);
        }
        for figure in of(5) {
            assert!(!figure.sides[1].too_few && figure.changes.len() == 1, "{figure:?}");
        }
    }
}
