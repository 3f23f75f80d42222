//! Ways to cut a list of blocks into partitions.

use std::collections::BTreeSet;
use std::ops::Range;

/// The longest graph in which cuts in two are tried at every position; in longer ones around the
/// middle of the cost.
const CUTS_MAX: usize = 16;

/// Groups of blocks, by position, and a description.
pub(super) type Cut = (String, Vec<Vec<usize>>);

/// Returns ways to put `blocks` (positions in an order that items pass) into at most `cores`
/// partitions, and each block into one of its own. `costs` are by position; `components` are groups
/// without connection.
pub(super) fn cuts(
    blocks: &[usize],
    costs: &[f64],
    components: &[Vec<usize>],
    cores: usize,
) -> Vec<Cut> {
    let n = blocks.len();
    let runs = |ends: &[Range<usize>]| -> Vec<Vec<usize>> {
        ends.iter().map(|range| blocks[range.clone()].to_vec()).collect()
    };
    let mut cuts: Vec<Cut> = vec![("one partition".to_owned(), vec![blocks.to_vec()])];
    let cost = |at: &usize| costs.get(*at).copied().unwrap_or(1.0);
    let weights: Vec<f64> = blocks.iter().map(cost).collect();
    for k in 2..=cores.min(n) {
        cuts.push((format!("{k} runs of equal length"), runs(&equal(n, k))));
        cuts.push((format!("{k} runs of equal cost"), runs(&balanced(&weights, k))));
    }
    if cores >= 2 && n >= 2 {
        for at in two_way(&weights) {
            cuts.push((format!("cut before block {}", at + 1), runs(&[0..at, at..n])));
        }
    }
    let free = |group: &Vec<usize>| -> Vec<usize> {
        group.iter().copied().filter(|block| blocks.contains(block)).collect()
    };
    let parts: Vec<Vec<usize>> =
        components.iter().map(free).filter(|group| !group.is_empty()).collect();
    for k in 2..=cores.min(parts.len()) {
        let chains = equal(parts.len(), k).into_iter().map(|range| parts[range].concat());
        cuts.push((format!("whole chains on {k}"), chains.collect()));
    }
    cuts.push(("a partition for each block".to_owned(), runs(&equal(n, n))));
    let mut seen = BTreeSet::new();
    cuts.retain(|(_, groups)| seen.insert(groups.clone()));
    cuts
}

/// Cuts `n` elements into `k` runs whose lengths differ by one at most.
fn equal(n: usize, k: usize) -> Vec<Range<usize>> {
    (0..k).map(|part| n * part / k..n * (part + 1) / k).collect()
}

/// Cuts into `k` runs with the least maximal cost (dynamic programming over the last cut).
fn balanced(weights: &[f64], k: usize) -> Vec<Range<usize>> {
    let n = weights.len();
    let mut before = vec![0.0; n + 1];
    weights.iter().enumerate().for_each(|(at, weight)| before[at + 1] = before[at] + weight);
    // best[parts][end]: the cost of the most expensive run when the first `end` are in `parts`
    // runs, and its last cut.
    let mut best = vec![vec![(f64::INFINITY, 0); n + 1]; k + 1];
    best[0][0].0 = 0.0;
    for parts in 1..=k {
        for end in parts..=n {
            best[parts][end] = (parts - 1..end)
                .map(|cut| (best[parts - 1][cut].0.max(before[end] - before[cut]), cut))
                .min_by(|a, b| a.0.total_cmp(&b.0))
                .expect("at least one place to cut");
        }
    }
    let mut ranges = Vec::with_capacity(k);
    let mut end = n;
    for parts in (1..=k).rev() {
        let cut = best[parts][end].1;
        ranges.push(cut..end);
        end = cut;
    }
    ranges.reverse();
    ranges
}

/// Returns the positions at which a single cut is tried.
fn two_way(weights: &[f64]) -> Range<usize> {
    let n = weights.len();
    if n <= CUTS_MAX {
        return 1..n;
    }
    let middle = balanced(weights, 2)[0].end;
    let first = middle.saturating_sub(CUTS_MAX / 2).max(1);
    first..(first + CUTS_MAX).min(n)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn balanced_runs_are_as_cheap_as_brute_force_finds() {
        let mut random = millstream_stats::Random::new(3);
        for _ in 0..200 {
            let n = 3 + (random.bits() % 7) as usize;
            let weights: Vec<f64> = (0..n).map(|_| (random.bits() % 100) as f64).collect();
            let sum = |range: Range<usize>| weights[range].iter().sum::<f64>();
            let mut least = f64::INFINITY;
            for a in 1..n {
                for b in a + 1..n {
                    least = least.min(sum(0..a).max(sum(a..b)).max(sum(b..n)));
                }
            }
            let found = balanced(&weights, 3).into_iter().map(sum).fold(0.0, f64::max);
            assert_eq!(found, least, "{weights:?}");
        }
    }

    #[test]
    fn every_cut_holds_every_block_once_and_none_comes_twice() {
        for (n, cores) in [(1, 4), (2, 2), (8, 2), (8, 4), (40, 3)] {
            let blocks: Vec<usize> = (0..n).collect();
            let cuts = cuts(&blocks, &vec![1.0; n], std::slice::from_ref(&blocks), cores);
            for (what, groups) in &cuts {
                let mut all = groups.concat();
                all.sort_unstable();
                assert_eq!(all, blocks, "{what}");
                assert!(groups.iter().all(|group| !group.is_empty()), "{what}");
            }
            let distinct: BTreeSet<_> = cuts.iter().map(|(_, groups)| groups).collect();
            assert_eq!(distinct.len(), cuts.len());
            assert!(cuts.len() <= 3 * cores + CUTS_MAX);
        }
    }

    #[test]
    fn chains_that_nothing_joins_are_not_torn() {
        let chains = [vec![0, 2, 4], vec![1], vec![3, 5]];
        let all = cuts(&[0, 1, 2, 3, 4, 5], &[1.0; 6], &chains, 2);
        let (_, groups) = all.iter().find(|(what, _)| what == "whole chains on 2").unwrap();
        assert_eq!(*groups, [vec![0, 2, 4], vec![1, 3, 5]]);
    }
}
