//! Two sets of starts: the ratio of their figures, and whether they differ.
//!
//! The basis is Brunner and Munzel's statistic (*Biometrical Journal* 42, 2000): the probability
//! that a start of one set is above one of the other, divided by its own standard error, so that
//! one set may spread more than the other. It is judged against all assignments of the same starts
//! to two sets of those sizes (Neubert and Brunner, *Computational Statistics & Data Analysis* 51,
//! 2007), which is exact for equal sets of any size. The interval of the ratio has the factors by
//! which the other set's figures can be divided without a significant difference from the base's.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;

use crate::{LEVEL, Random, logs, median};

/// The largest number of assignments that are all tried; of more, so many are drawn.
const DEALS_MAX: u32 = 20_000;
/// The seed of the drawn ones.
const SEED: u64 = 1;

/// The ratio of a set's figures to the base's.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Ratio {
    /// The median of the ratios of each of its starts to each of the base's (Hodges and Lehmann).
    pub estimate: f64,
    /// Its 95 % interval; `None` with too few starts.
    pub interval: Option<(f64, f64)>,
}

impl fmt::Display for Ratio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.interval {
            Some((low, high)) => {
                let [middle, low, high] = [self.estimate, low, high].map(short_ratio);
                write!(f, "{middle} ({low} to {high})")
            }
            None => write!(f, "{} (more starts)", short_ratio(self.estimate)),
        }
    }
}

/// Compares pairs of sets; caches the statistic's distribution for each pair of sizes.
#[derive(Debug, Default)]
pub struct Pairs(BTreeMap<(usize, usize), Vec<f64>>);

impl Pairs {
    /// Returns the ratio of a set's figures to the base's.
    pub fn ratio(&mut self, base: &[f64], other: &[f64]) -> Ratio {
        let (base, other) = (logs(base), logs(other));
        let mut apart: Vec<f64> =
            other.iter().flat_map(|one| base.iter().map(move |base| one - base)).collect();
        apart.sort_by(f64::total_cmp);
        let middle = median(&apart);
        let bounds = self.bounds(&base, &other, &apart);
        let interval = bounds.map(|(low, high)| (low.exp(), high.exp()));
        Ratio { estimate: middle.exp(), interval }
    }

    /// Returns the shifts that cannot be rejected, between those with a slightly higher and a
    /// slightly lower coverage than required.
    fn bounds(&mut self, base: &[f64], other: &[f64], apart: &[f64]) -> Option<(f64, f64)> {
        let chances = self.0.entry((base.len(), other.len())).or_insert_with(|| {
            let labels: Vec<bool> = (0..base.len() + other.len()).map(|n| n < base.len()).collect();
            let ends: Vec<usize> = (1..=labels.len()).collect();
            let mut all = Vec::new();
            each_deal(&labels, &mut |deal| all.push(statistic(deal, &ends).abs()));
            all.sort_by(f64::total_cmp);
            all
        });
        let all = chances.len() as f64;
        let holds = |limit: f64| chances.partition_point(|size| *size <= limit + 1e-9) as f64 / all;
        let at = ((LEVEL * all).ceil() as usize).saturating_sub(1);
        let wide = chances.get(at).copied().filter(|limit| limit.is_finite())?;
        let below = chances.partition_point(|size| *size < wide - 1e-9);
        let narrow = below.checked_sub(1).map_or(0.0, |at| chances[at]);
        let share = (holds(wide) - LEVEL) / (holds(wide) - holds(narrow)).max(1e-12);
        let (far, near) = (kept(base, other, apart, wide)?, kept(base, other, apart, narrow)?);
        let lean = |from: f64, to: f64| from + (to - from) * share.clamp(0.0, 1.0);
        Some((lean(far.0, near.0), lean(far.1, near.1)))
    }
}

/// Returns the probability that equal sets differ at least as much as these, in either direction.
#[must_use]
pub fn chance(base: &[f64], other: &[f64]) -> f64 {
    if base.is_empty() || other.is_empty() {
        return 1.0;
    }
    let (labels, ends) = in_order(base, other, 0.0);
    let seen = statistic(&labels, &ends).abs();
    let (mut as_far, mut all) = (0u32, 0u32);
    each_deal(&labels, &mut |deal| {
        all += 1;
        as_far += u32::from(statistic(deal, &ends).abs() >= seen * (1.0 - 1e-12));
    });
    // The observed assignment is one of those that could have been drawn.
    let is_drawn = deals(base.len(), other.len()) > f64::from(DEALS_MAX);
    f64::from(as_far + u32::from(is_drawn)) / f64::from(all + u32::from(is_drawn))
}

/// Returns the smallest p that sets of these sizes can have: without any overlap.
#[must_use]
pub fn least_chance(base: usize, other: usize) -> f64 {
    let all = deals(base, other);
    (2.0 / all).max(1.0 / f64::from(DEALS_MAX + 1)).min(1.0)
}

/// Counts the assignments of starts to sets of these sizes.
fn deals(base: usize, other: usize) -> f64 {
    (1..=base).map(|n| (other + n) as f64 / n as f64).product()
}

/// Calls `see` with every assignment of the labels, or with the largest number of random ones.
fn each_deal(labels: &[bool], see: &mut dyn FnMut(&[bool])) {
    let base = labels.iter().filter(|of_base| **of_base).count();
    let mut deal = labels.to_vec();
    if base == 0 || base == labels.len() {
        return see(&deal);
    }
    if deals(base, labels.len() - base) > f64::from(DEALS_MAX) || labels.len() > 63 {
        let mut random = Random::new(SEED);
        for _ in 0..DEALS_MAX {
            random.shuffle(&mut deal);
            see(&deal);
        }
        return;
    }
    // Numbers with `base` one bits, each the next larger (Gosper).
    let mut ones = (1u64 << base) - 1;
    while ones < 1u64 << labels.len() {
        (0..).zip(&mut deal).for_each(|(bit, label)| *label = ones >> bit & 1 == 1);
        see(&deal);
        let lowest = ones & ones.wrapping_neg();
        let carried = ones + lowest;
        ones = (((carried ^ ones) >> 2) / lowest) | carried;
    }
}

/// Returns which values are the base's, in ascending order, and where each group of equal ones
/// ends.
fn in_order(base: &[f64], other: &[f64], shift: f64) -> (Vec<bool>, Vec<usize>) {
    let mut all: Vec<(f64, bool)> = base.iter().map(|value| (*value, true)).collect();
    all.extend(other.iter().map(|value| (value - shift, false)));
    all.sort_by(|a, b| a.0.total_cmp(&b.0));
    let ends = (1..=all.len()).filter(|at| *at == all.len() || all[*at].0 > all[*at - 1].0);
    (all.iter().map(|one| one.1).collect(), ends.collect())
}

/// Returns Brunner and Munzel's statistic of values in ascending order: above 0 when the other
/// set's are larger.
fn statistic(of_base: &[bool], ends: &[usize]) -> f64 {
    // For each side: sum and sum of squares of the number of values of the other side below.
    let (mut base, mut other) = ((0.0, 0.0, 0.0), (0.0, 0.0, 0.0));
    let mut from = 0;
    for end in ends {
        let mine = of_base[from..*end].iter().filter(|one| **one).count() as f64;
        let theirs = (end - from) as f64 - mine;
        let (below_mine, below_theirs) = (other.0 + theirs / 2.0, base.0 + mine / 2.0);
        base.1 += mine * below_mine;
        base.2 += mine * below_mine * below_mine;
        other.1 += theirs * below_theirs;
        other.2 += theirs * below_theirs * below_theirs;
        base.0 += mine;
        other.0 += theirs;
        from = *end;
    }
    let (m, n) = (base.0, other.0);
    let spread = |count: f64, sum: f64, squares: f64| {
        if count > 1.0 { (squares - sum * sum / count).max(0.0) / (count - 1.0) } else { 0.0 }
    };
    let variance =
        spread(m, base.1, base.2) / (n * n * m) + spread(n, other.1, other.2) / (m * m * n);
    let off = other.1 / (m * n) - 0.5;
    match variance > 1e-12 {
        true => off / variance.sqrt(),
        false if off.abs() < 1e-12 => 0.0,
        false => off.signum() * f64::INFINITY,
    }
}

/// Returns the outermost shifts with which the statistic stays within `limit`.
fn kept(base: &[f64], other: &[f64], apart: &[f64], limit: f64) -> Option<(f64, f64)> {
    let stays = |at: &usize| {
        let (low, high) = (apart[at - 1], apart[*at]);
        let (labels, ends) = in_order(base, other, f64::midpoint(low, high));
        statistic(&labels, &ends).abs() <= limit + 1e-9
    };
    let middle = median(apart);
    let low = (1..apart.len()).find(stays).map_or(middle, |at| apart[at - 1]);
    let high = (1..apart.len()).rev().find(stays).map_or(middle, |at| apart[at]);
    Some((low, high))
}

/// Returns ranks from 1; equal values share the middle of theirs.
#[must_use]
pub fn ranks(values: &[f64]) -> Vec<f64> {
    let rank = |value: &f64| {
        let below = values.iter().filter(|other| *other < value).count();
        let equal = values.iter().filter(|other| *other == value).count();
        below as f64 + (equal as f64 + 1.0) / 2.0
    };
    values.iter().map(rank).collect()
}

/// Formats a ratio with three significant digits, also far from 1.
#[must_use]
pub fn short_ratio(ratio: f64) -> String {
    // The exponent after rounding: 0.9996 has that of 1.00.
    let rounded = format!("{ratio:.2e}");
    let exponent = rounded.split_once('e').and_then(|(_, digits)| digits.parse::<i32>().ok());
    match exponent {
        Some(exponent @ -5..=5) => format!("{ratio:.*}", (2 - exponent).max(0) as usize),
        _ => rounded,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_keeps_three_digits_whatever_its_size() {
        for (ratio, text) in [
            (0.0024, "0.00240"),
            (0.9996, "1.00"),
            (0.07, "0.0700"),
            (1.234, "1.23"),
            (12.345, "12.3"),
            (417.4, "417"),
            (4170.4, "4170"),
            (0.0, "0.00"),
            (2.5e-9, "2.50e-9"),
            (f64::INFINITY, "inf"),
        ] {
            assert_eq!(short_ratio(ratio), text);
        }
    }

    #[test]
    fn equal_values_share_the_middle_of_their_ranks() {
        assert_eq!(ranks(&[3.0, 1.0, 3.0]), [2.5, 1.0, 2.5]);
    }

    /// `scipy.stats.brunnermunzel` (1.17) and its share of all arrangements that are as far off;
    /// the middle of all ratios by numpy. `peers/statistics_scipy.py` computes fresh ones.
    #[test]
    fn it_agrees_with_scipy() {
        type Case<'a> = (&'a [f64], &'a [f64], f64, f64, f64);
        let cases: [Case<'_>; 4] = [
            (
                &[101.0, 103.0, 99.0, 110.0, 105.0],
                &[120.0, 104.0, 131.0, 109.0, 140.0],
                3.358_757_210_636_1,
                10.0 / 252.0,
                1.165_048_543_689_32,
            ),
            (
                &[5.0, 7.0, 7.0, 9.0],
                &[7.0, 9.0, 11.0, 12.0],
                2.419_677_397_852_33,
                14.0 / 70.0,
                1.366_260_102_127_95,
            ),
            (
                &[1.0, 2.0, 3.0, 4.0],
                &[5.0, 6.0, 7.0, 8.0],
                f64::INFINITY,
                2.0 / 70.0,
                2.581_988_897_471_61,
            ),
            (
                &[10.0, 20.0, 30.0],
                &[15.0, 25.0, 35.0, 45.0, 55.0],
                1.700_840_128_541_52,
                10.0 / 56.0,
                1.75,
            ),
        ];
        for (base, other, size, p, ratio) in cases {
            let (labels, ends) = in_order(base, other, 0.0);
            let found = statistic(&labels, &ends);
            assert!(found == size || (found / size - 1.0).abs() < 1e-12, "{found} {size}");
            assert!((chance(base, other) - p).abs() < 1e-12, "{} {p}", chance(base, other));
            assert!((chance(other, base) - p).abs() < 1e-12, "either way");
            let found = Pairs::default().ratio(base, other).estimate;
            assert!((found / ratio - 1.0).abs() < 1e-12, "{found} {ratio}");
        }
    }

    #[test]
    fn three_starts_each_give_no_interval_and_four_do() {
        let mut pairs = Pairs::default();
        let set = |base: f64, count: u32| -> Vec<f64> {
            (0..count).map(|n| base * (1.0 + 0.01 * f64::from(n))).collect()
        };
        let three = pairs.ratio(&set(100.0, 3), &set(200.0, 3));
        assert_eq!((three.interval, &*three.to_string()), (None, "2.00 (more starts)"));
        assert!((least_chance(3, 3) - 0.1).abs() < 1e-12);
        let four = pairs.ratio(&set(100.0, 4), &set(200.0, 4));
        let (low, high) = four.interval.unwrap();
        assert!(1.9 < low && low < 2.0 && 2.0 < high && high < 2.1, "{four:?}");
        let alike = pairs.ratio(&[5.0; 6], &[5.0; 6]);
        assert_eq!(alike.interval, Some((1.0, 1.0)), "nothing varies");
        assert_eq!((chance(&[5.0; 6], &[5.0; 6]), chance(&[], &[5.0])), (1.0, 1.0));
    }

    #[test]
    fn one_wild_start_does_not_move_the_ratio() {
        let mut other = vec![100.0; 6];
        other[5] = 1000.0;
        let ratio = Pairs::default().ratio(&[100.0; 6], &other);
        assert_eq!(ratio.estimate, 1.0);
    }

    #[test]
    fn many_starts_are_dealt_at_random_and_still_told_apart() {
        let set =
            |base: f64| -> Vec<f64> { (0..30).map(|n| base + f64::from(n * 37 % 30)).collect() };
        assert!(chance(&set(100.0), &set(100.0)) > 0.99);
        let p = chance(&set(100.0), &set(200.0));
        assert!((p - least_chance(30, 30)).abs() < 1e-9, "{p}");
        let (low, high) = Pairs::default().ratio(&set(100.0), &set(200.0)).interval.unwrap();
        assert!(1.7 < low && high < 2.0, "{low} {high}");
    }
}
