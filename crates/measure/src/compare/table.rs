//! All tests of a table under one rate of error.

use super::change::{self, change_points};
use super::{Cell, Change, ChangePoints, ChangeRule, Comparison, SetFigures, SetOrder};
use millstream_stats::{adjusted, chance, least_chance};

/// A test of one side against the base, or along all sets of a cell.
struct Test {
    cell: usize,
    /// The side; `None` for all.
    side: Option<usize>,
    p: f64,
    /// The smallest possible p.
    least: f64,
}

/// All tests of a table, each with its p adjusted for the number of tests.
pub(super) struct Tests {
    all: Vec<Test>,
    adjusted: Vec<f64>,
}

impl Tests {
    pub(super) fn of(cells: &[Cell<'_>], rule: &ChangeRule) -> Self {
        let mut all = Vec::new();
        for (index, cell) in cells.iter().enumerate() {
            match cell.order {
                SetOrder::Base => all.extend(beside_base(index, cell)),
                SetOrder::Time => {
                    let p = change::chance(&told(cell).1, rule.seed);
                    all.push(Test { cell: index, side: None, p, least: p });
                }
            }
        }
        let adjusted = adjusted(&all.iter().map(|test| test.p).collect::<Vec<_>>());
        Self { all, adjusted }
    }

    /// Returns the comparison of a cell.
    pub(super) fn comparison(
        &self,
        index: usize,
        cell: &Cell<'_>,
        mut sides: Vec<SetFigures>,
        rule: &ChangeRule,
    ) -> Comparison {
        let mut changes = Vec::new();
        let smallest = (1.0 + rule.effect_min).ln();
        for (number, test) in self.all.iter().enumerate().filter(|(_, test)| test.cell == index) {
            let p = self.adjusted[number];
            let Some(at) = test.side else {
                let ChangePoints { changes: found, untold } = self.in_time(number, cell, rule);
                untold.into_iter().for_each(|side| sides[side].too_few = true);
                changes = found;
                continue;
            };
            let ratio = sides[at].ratio.map_or(1.0, |ratio| ratio.estimate);
            if p <= rule.alpha && ratio.ln().abs() >= smallest {
                changes.push(Change { at, ratio, p });
            }
            sides[at].too_few = p > rule.alpha && !self.could_show(number, rule);
        }
        let (title, figure) = (cell.title.to_owned(), cell.figure);
        Comparison { title, figure, order: cell.order, sides, changes }
    }

    /// Returns whether the test could have found the clearest possible difference.
    fn could_show(&self, number: usize, rule: &ChangeRule) -> bool {
        let mut p: Vec<f64> = self.all.iter().map(|test| test.p).collect();
        p[number] = self.all[number].least;
        adjusted(&p)[number] <= rule.alpha
    }

    /// Returns the changes along a cell's sets, with the share of the rate of error left for them.
    fn in_time(&self, number: usize, cell: &Cell<'_>, rule: &ChangeRule) -> ChangePoints {
        let (places, figures) = told(cell);
        let before = self.all.iter().filter(|test| test.p < self.all[number].p);
        let left = (self.all.len() - before.count()) as f64;
        let is_found = self.adjusted[number] <= rule.alpha;
        let mut found = change_points(&figures, rule.alpha / left, rule);
        if !is_found {
            found.changes.clear();
        }
        for change in &mut found.changes {
            change.at = places[change.at];
            change.p = (change.p * left).max(self.adjusted[number]).min(1.0);
        }
        found.untold = found.untold.into_iter().map(|set| places[set]).collect();
        found
    }
}

/// Returns a test for each side that can be compared with the base.
fn beside_base(index: usize, cell: &Cell<'_>) -> Vec<Test> {
    let Some(((_, base, _), others)) = cell.sets.split_first() else { return Vec::new() };
    let test = |(side, (_, starts, _)): (usize, &(_, Vec<f64>, _))| {
        (!base.is_empty() && !starts.is_empty()).then(|| Test {
            cell: index,
            side: Some(side + 1),
            p: chance(base, starts),
            least: least_chance(base.len(), starts.len()),
        })
    };
    others.iter().enumerate().filter_map(test).collect()
}

/// Returns the sets that have the cell: their positions and figures.
fn told(cell: &Cell<'_>) -> (Vec<usize>, Vec<Vec<f64>>) {
    let sets = cell.sets.iter().enumerate().filter(|(_, (_, starts, _))| !starts.is_empty());
    sets.map(|(place, (_, starts, _))| (place, starts.clone())).unzip()
}
