//! Where a figure changes along an order of sets.
//!
//! Of all stretches of sets and all boundaries in them, the one at which the ranks of both sides
//! differ most is tested against random orders of the same starts, and either side of it is
//! searched in turn (Fryzlewicz, *Annals of Statistics* 42, 2014, with every stretch, because sets
//! are few, and a permutation test, because starts are). Ranks, because a single wild start must
//! not decide.

use millstream_dsp::noise::Noise;
use serde::Serialize;

use super::{Rule, middle};

/// Random orders for a test.
const ORDERS: u32 = 1999;

/// A change.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Change {
    /// The first set behind it; sets count from 0.
    pub at: usize,
    /// The figure behind it over the one before it.
    pub ratio: f64,
    /// The chance of such a difference where there is none.
    pub p: f64,
}

/// The changes along sets, each the figures of its starts; in the order of the sets.
#[must_use]
pub fn change_points(sets: &[Vec<f64>], rule: &Rule) -> Vec<Change> {
    let mut random = Noise::new(rule.seed);
    let mut changes = Vec::new();
    search(sets, 0, rule, &mut random, &mut changes);
    changes.sort_by_key(|change| change.at);
    changes
}

/// Whether the clearest difference that so few starts can show is no evidence.
pub(super) fn too_few(sets: &[Vec<f64>], alpha: f64) -> bool {
    let all: usize = sets.iter().map(Vec::len).sum();
    let mut before = 0;
    let best = sets.iter().map(|set| {
        before += set.len();
        2.0 / ways(all, before)
    });
    sets.len() > 1 && best.fold(f64::INFINITY, f64::min) > alpha
}

/// Ways to choose some of all.
fn ways(all: usize, some: usize) -> f64 {
    (0..some.min(all - some)).map(|k| (all - k) as f64 / (k + 1) as f64).product()
}

fn search(
    sets: &[Vec<f64>],
    offset: usize,
    rule: &Rule,
    random: &mut Noise,
    changes: &mut Vec<Change>,
) {
    if sets.len() < 2 {
        return;
    }
    let values: Vec<f64> = sets.iter().flatten().copied().collect();
    let mut edges = vec![0];
    edges.extend(sets.iter().scan(0, |end, set| {
        *end += set.len();
        Some(*end)
    }));
    let mut ranks = ranks(&values);
    let found = strongest(&ranks, &edges);
    let mut as_strong = 0;
    for _ in 0..ORDERS {
        shuffle(&mut ranks, random);
        let by_chance = strongest(&ranks, &edges).statistic;
        as_strong += u32::from(by_chance >= found.statistic * (1.0 - 1e-12));
    }
    let p = f64::from(1 + as_strong) / f64::from(1 + ORDERS);
    let [from, at, to] = found.sets;
    let part = |from: usize, to: usize| middle(&values[edges[from]..edges[to]]);
    let ratio = part(at, to) / part(from, at).max(1.0);
    if p > rule.alpha || ratio.ln().abs() < (1.0 + rule.effect_min).ln() {
        return;
    }
    changes.push(Change { at: offset + at, ratio, p });
    let (left, right) = sets.split_at(at);
    search(left, offset, rule, random, changes);
    search(right, offset + at, rule, random, changes);
}

/// A stretch of sets, and a boundary in it.
struct Split {
    /// The first set, the first behind the boundary, and the one behind the last.
    sets: [usize; 3],
    statistic: f64,
}

/// The split at which the ranks of both sides differ most; set `n` has the ranks from `edges[n]`.
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
    let mut best = Split { sets: [0, 1, edges.len() - 1], statistic: -1.0 };
    for to in 2..edges.len() {
        for at in 1..to {
            for from in 0..at {
                let ((left, before), (right, behind)) = (part(from, at), part(at, to));
                let weight = (left * right / (left + right)).sqrt();
                let statistic = (behind - before).abs() * weight;
                if statistic > best.statistic {
                    best = Split { sets: [from, at, to], statistic };
                }
            }
        }
    }
    best
}

/// Ranks from 1; equal values share the middle of theirs.
fn ranks(values: &[f64]) -> Vec<f64> {
    let rank = |value: &f64| {
        let below = values.iter().filter(|other| *other < value).count();
        let equal = values.iter().filter(|other| *other == value).count();
        below as f64 + (equal as f64 + 1.0) / 2.0
    };
    values.iter().map(rank).collect()
}

fn shuffle(items: &mut [f64], random: &mut Noise) {
    for last in (1..items.len()).rev() {
        items.swap(last, (random.bits() % (last as u64 + 1)) as usize);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_changes_are_found_where_they_are() {
        let set = |base: f64| (0..5).map(|n| base + f64::from(n)).collect::<Vec<_>>();
        let sets = [set(100.0), set(101.0), set(300.0), set(301.0), set(100.0), set(99.0)];
        let found = change_points(&sets, &Rule::default());
        let at: Vec<_> = found.iter().map(|change| change.at).collect();
        assert_eq!(at, [2, 4], "{found:?}");
    }

    #[test]
    fn a_small_change_is_no_news_and_equal_values_are_none() {
        let sets = [vec![100.0; 8], vec![104.0; 8]];
        assert_eq!(change_points(&sets, &Rule::default()), []);
        assert_eq!(change_points(&[vec![5.0; 8], vec![5.0; 8]], &Rule::default()), []);
        assert_eq!(change_points(&[vec![5.0; 8]], &Rule::default()), []);
        assert_eq!(ranks(&[3.0, 1.0, 3.0]), [2.5, 1.0, 2.5]);
    }

    #[test]
    fn how_many_starts_are_enough() {
        let sets = |count: usize| vec![vec![1.0; count], vec![2.0; count]];
        assert!(too_few(&sets(4), 0.01) && !too_few(&sets(5), 0.01));
        assert_eq!((ways(10, 5), ways(10, 10)), (252.0, 1.0));
    }
}
