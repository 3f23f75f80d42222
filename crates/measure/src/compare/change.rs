//! Change points of a figure along runs that follow each other in time. Sets without an order, such
//! as kernels, are compared with the base instead.
//!
//! Of all stretches of sets and all boundaries in them, the one at which the ranks of both sides
//! differ most is tested against random orders of the same starts, and then both sides of it are
//! searched in turn (Fryzlewicz, *Annals of Statistics* 42, 2014, with every stretch, because sets
//! are few, and a permutation test, because starts are few). The test uses ranks because a single
//! extreme start must not decide. Last, parts whose difference is too small to matter are joined.

use millstream_stats::Random;
use serde::Serialize;

use super::{ChangeRule, middle};
use millstream_stats::ranks;

/// Random orders per test.
const ORDERS: u32 = 4999;

/// A change of a figure at a boundary between sets.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Change {
    /// The first set after the change; sets count from 0.
    pub at: usize,
    /// The figure after the change, divided by the figure before it.
    pub ratio: f64,
    /// The probability of such a difference without a change, adjusted for all tests of the table.
    pub p: f64,
}

/// The result of a search for changes.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ChangePoints {
    /// The changes, in the order of the sets.
    pub changes: Vec<Change>,
    /// Sets without an estimate: even a figure clear of all others could not have been significant
    /// with so few starts.
    pub untold: Vec<usize>,
}

/// Returns the probability that equal sets differ at least as much at some boundary.
#[must_use]
pub fn chance(sets: &[Vec<f64>], seed: u64) -> f64 {
    SetInterval::of(sets, &mut Random::new(seed)).map_or(1.0, |stretch| stretch.p)
}

/// Returns the changes along sets; each set is the figures of its starts. The probability of any
/// false change is at most `alpha`: the part that a change leaves over is shared by both sides of
/// it.
#[must_use]
pub fn change_points(sets: &[Vec<f64>], alpha: f64, rule: &ChangeRule) -> ChangePoints {
    let mut random = Random::new(rule.seed);
    let mut found = ChangePoints::default();
    search(sets, 0, alpha, &mut random, &mut found);
    found.changes.sort_by_key(|change| change.at);
    let smallest = (1.0 + rule.effect_min).ln();
    // Ranks do not show sizes: a part can be compared with its neighbours only after all divisions.
    while let Some(index) = measure(sets, &mut found.changes)
        && found.changes[index].ratio.ln().abs() < smallest
    {
        found.changes.remove(index);
    }
    found.untold.sort_unstable();
    found
}

/// Sets the ratio of each change, between the parts on both sides; returns the smallest change.
fn measure(sets: &[Vec<f64>], changes: &mut [Change]) -> Option<usize> {
    let mut edges = vec![0];
    edges.extend(changes.iter().map(|change| change.at));
    edges.push(sets.len());
    let part = |from: usize, to: usize| middle(&sets[from..to].concat()).max(1.0);
    for (change, edges) in changes.iter_mut().zip(edges.windows(3)) {
        change.ratio = part(edges[1], edges[2]) / part(edges[0], edges[1]);
    }
    let size = |index: &usize| changes[*index].ratio.ln().abs();
    (0..changes.len()).min_by(|a, b| size(a).total_cmp(&size(b)))
}

/// A stretch of sets, tested for its strongest boundary.
struct SetInterval {
    edges: Vec<usize>,
    split: Split,
    /// The strengths in random orders.
    by_chance: Vec<f64>,
    p: f64,
}

impl SetInterval {
    fn of(sets: &[Vec<f64>], random: &mut Random) -> Option<Self> {
        if sets.len() < 2 {
            return None;
        }
        let mut edges = vec![0];
        edges.extend(sets.iter().scan(0, |end, set| {
            *end += set.len();
            Some(*end)
        }));
        let mut ranks = ranks(&sets.concat());
        let split = strongest(&ranks, &edges);
        let mut by_chance = Vec::new();
        for _ in 0..ORDERS {
            random.shuffle(&mut ranks);
            by_chance.push(strongest(&ranks, &edges).statistic);
        }
        let mut stretch = Self { edges, split, by_chance, p: 1.0 };
        stretch.p = stretch.chance(stretch.split.statistic);
        Some(stretch)
    }

    fn chance(&self, statistic: f64) -> f64 {
        let as_strong = self.by_chance.iter().filter(|one| **one >= statistic * (1.0 - 1e-12));
        (1 + as_strong.count()) as f64 / f64::from(1 + ORDERS)
    }
}

fn search(
    sets: &[Vec<f64>],
    offset: usize,
    alpha: f64,
    random: &mut Random,
    found: &mut ChangePoints,
) {
    let Some(stretch) = SetInterval::of(sets, random) else { return };
    let SetInterval { split, edges, p, .. } = &stretch;
    if *p > alpha {
        let clear =
            |set: &usize| stretch.chance(strongest(&standing_out(edges, *set), edges).statistic);
        let untold = (1..sets.len()).filter(|set| clear(set) > alpha);
        found.untold.extend(untold.map(|set| offset + set));
        return;
    }
    found.changes.push(Change { at: offset + split.at, ratio: 1.0, p: *p });
    let (left, right) = sets.split_at(split.at);
    search(left, offset, alpha / 2.0, random, found);
    search(right, offset + split.at, alpha / 2.0, random, found);
}

/// Returns the ranks when all values of one set are above those of the others, which are equal.
fn standing_out(edges: &[usize], set: usize) -> Vec<f64> {
    let all = edges[edges.len() - 1];
    let own = edges[set]..edges[set + 1];
    let others = (all - own.len()) as f64;
    let rank = |index: usize| match own.contains(&index) {
        true => others + (own.len() as f64 + 1.0) / 2.0,
        false => (others + 1.0) / 2.0,
    };
    (0..all).map(rank).collect()
}

/// A stretch of sets with a boundary in it.
struct Split {
    /// The first set after the boundary.
    at: usize,
    statistic: f64,
}

/// Finds the split at which the ranks of both sides differ most; set `n` has the ranks from
/// `edges[n]`.
fn strongest(ranks: &[f64], edges: &[usize]) -> Split {
    let mut sums = vec![0.0];
    sums.extend(ranks.iter().scan(0.0, |sum, rank| {
        *sum += rank;
        Some(*sum)
    }));
    let part = |from: usize, to: usize| {
        let count = (edges[to] - edges[from]) as f64;
        (count, (sums[edges[to]] - sums[edges[from]]) / count)
    };
    let mut best = Split { at: 1, statistic: -1.0 };
    for to in 2..edges.len() {
        for at in 1..to {
            for from in 0..at {
                let ((left, before), (right, behind)) = (part(from, at), part(at, to));
                let weight = (left * right / (left + right)).sqrt();
                let statistic = (behind - before).abs() * weight;
                if statistic > best.statistic {
                    best = Split { at, statistic };
                }
            }
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALPHA: f64 = 0.01;

    fn changes(sets: &[Vec<f64>]) -> Vec<(usize, f64)> {
        let found = change_points(sets, ALPHA, &ChangeRule::default());
        found.changes.iter().map(|change| (change.at, (change.ratio * 100.0).round())).collect()
    }

    /// Returns sets with this many starts around each base, all different.
    fn sets<const N: usize>(bases: [f64; N], starts: u32) -> Vec<Vec<f64>> {
        let set = |base: f64| (0..starts).map(|n| base * (1.0 + 1e-3 * f64::from(n))).collect();
        bases.map(set).into()
    }

    #[test]
    fn two_changes_are_found_where_they_are() {
        let bases = [100.0, 101.0, 300.0, 301.0, 100.0, 99.0];
        let at: Vec<_> = changes(&sets(bases, 5)).iter().map(|(at, _)| *at).collect();
        assert_eq!(at, [2, 4]);
    }

    #[test]
    fn a_small_change_is_no_news_and_equal_values_are_none() {
        assert_eq!(changes(&[vec![100.0; 8], vec![104.0; 8]]), []);
        assert_eq!(changes(&[vec![5.0; 8], vec![5.0; 8]]), []);
        assert_eq!(changes(&[vec![5.0; 8]]), []);
    }

    #[test]
    fn a_small_change_does_not_hide_a_large_one_nor_take_its_place() {
        assert_eq!(changes(&sets([100.0, 104.0, 104.0, 130.0], 6)), [(3, 125.0)]);
        assert_eq!(changes(&sets([100.0, 104.0, 104.0, 104.0, 125.0], 6)), [(4, 120.0)]);
        assert_eq!(changes(&sets([100.0, 104.0, 130.0], 6)), [(2, 127.0)]);
        // Five small steps up are one change at some boundary.
        assert_eq!(changes(&sets([100.0, 105.0, 110.0, 115.0, 120.0], 6)).len(), 1);
    }

    #[test]
    fn a_set_that_could_not_have_stood_out_is_named() {
        let untold = |starts: u32| {
            let found = change_points(&sets([100.0, 300.0], starts), ALPHA, &ChangeRule::default());
            (found.changes.len(), found.untold)
        };
        assert_eq!((untold(4), untold(6)), ((0, vec![1]), (1, vec![])));
        // With three starts no set of three can stand out.
        let found = change_points(&sets([100.0, 300.0, 100.0], 3), ALPHA, &ChangeRule::default());
        assert_eq!((found.changes.len(), &found.untold[..]), (0, &[1, 2][..]));
        // For equal sets, six starts suffice for that result.
        let alike = change_points(&sets([100.0; 4], 6), ALPHA, &ChangeRule::default());
        assert_eq!(alike, ChangePoints::default());
    }
}
