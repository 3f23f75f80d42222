//! Converts a placement to a plan.

use super::Hints;
use super::case::PlacementCase;
use super::state::Placement;
use millstream_flow::EdgeShape;
use millstream_flow::plan::{Buffers, Partition, Plan, WaitMode};
use std::collections::BTreeSet;

/// The least size of a ring that is fitted to a cache.
const LEAST_RING_BYTES: u64 = 8 << 10;
const PAGE_BYTES: u64 = 4096;

/// Writes the partitions by hand unchanged, then one for each CPU with other blocks.
pub(super) fn plan(case: &PlacementCase, places: &[usize], hints: &Hints) -> Plan {
    let mut partitions = hints.plan.partitions.clone();
    let mut order: Vec<usize> = Vec::new();
    let mut by_rank: Vec<usize> = (0..case.problem.units.len()).collect();
    let rank = |unit: &usize| case.problem.units[*unit].rank;
    by_rank.sort_by(|a, b| rank(a).total_cmp(&rank(b)));
    for unit in by_rank {
        if !case.problem.units[unit].by_hand && !order.contains(&places[unit]) {
            order.push(places[unit]);
        }
    }
    let state = Placement::with(&case.problem, places);
    for cpu in order {
        let here = |block: &usize| {
            let unit = case.unit_of[*block];
            !case.problem.units[unit].by_hand && places[unit] == cpu
        };
        let blocks: Vec<usize> = (0..case.shape.blocks.len()).filter(here).collect();
        partitions.push(Partition {
            name: unused_name(&partitions, case, &blocks),
            blocks: blocks.iter().map(|b| case.shape.blocks[*b].name.clone()).collect(),
            cpu: (!hints.unpinned).then_some(case.problem.machine.cpus[cpu].number),
            wait: wait(case, &state, cpu, hints),
        });
    }
    let buffers = buffers(case, &state, &hints.plan.buffers);
    Plan { partitions, buffers, ..hints.plan.clone() }
}

/// Chooses the wait mode. Spinning for about the cost of a wake-up is worthwhile on a CPU of the
/// partition's own; next to a busy sibling or another partition it would only take CPU time from
/// them.
fn wait(case: &PlacementCase, state: &Placement<'_>, cpu: usize, hints: &Hints) -> WaitMode {
    let beside = case.problem.machine.siblings(cpu).any(|sibling| state.units[sibling] > 0);
    let by_hand = |unit: &usize| case.problem.units[*unit].by_hand && state.places[*unit] == cpu;
    let shared = (0..state.places.len()).any(|unit| by_hand(&unit));
    if hints.unpinned || state.used.len() == 1 || beside || shared {
        WaitMode::Park
    } else {
        WaitMode::Adaptive
    }
}

/// Sizes rings so that they stay in the caches. A size other than the default was set by hand and
/// stays.
fn buffers(case: &PlacementCase, state: &Placement<'_>, by_hand: &Buffers) -> Buffers {
    let default = Buffers::default();
    let mut buffers = by_hand.clone();
    if by_hand.inside_bytes == default.inside_bytes {
        buffers.inside_bytes = inside_bytes(case, state).min(default.inside_bytes);
    }
    if by_hand.between_bytes == default.between_bytes {
        buffers.between_bytes = between_bytes(case, state).min(default.between_bytes);
    }
    buffers
}

/// Sizes the rings of a partition to half of its share of the L2 cache; the other half is for its
/// blocks' state. The fullest partition decides.
fn inside_bytes(case: &PlacementCase, state: &Placement<'_>) -> usize {
    let machine = &case.problem.machine;
    let of_cpu = |cpu: &usize| {
        let l2 = machine.cpus[*cpu].l2_bytes;
        let near = |other: &&usize| machine.cpus[**other].groups[1] == machine.cpus[*cpu].groups[1];
        let sharers = state.used.iter().filter(near).count().max(1) as u64;
        let inside = |edge: &&EdgeShape| ends(case, state, edge) == [*cpu; 2];
        let edges = case.shape.edges.iter().filter(inside);
        let rings: BTreeSet<&str> = edges.map(|edge| edge.output.as_str()).collect();
        (l2 > 0 && !rings.is_empty()).then(|| l2 / 2 / sharers / rings.len() as u64)
    };
    pages(state.used.iter().filter_map(of_cpu).min())
}

/// Sizes the rings between partitions to half of the smallest cache that both ends share.
fn between_bytes(case: &PlacementCase, state: &Placement<'_>) -> usize {
    let machine = &case.problem.machine;
    let all = case.shape.edges.iter().map(|edge| ends(case, state, edge));
    let cuts: Vec<[usize; 2]> = all.filter(|[from, to]| from != to).collect();
    let share = |[from, to]: &[usize; 2]| {
        let shared =
            |level: usize| machine.cpus[*from].groups[level] == machine.cpus[*to].groups[level];
        let cpu = &machine.cpus[*from];
        let (level, bytes) = if shared(1) { (1, cpu.l2_bytes) } else { (2, cpu.l3_bytes) };
        let here = |[from, to]: &&[usize; 2]| {
            [from, to].iter().any(|end| machine.cpus[**end].groups[level] == cpu.groups[level])
        };
        let rings = cuts.iter().filter(here).count() as u64;
        (shared(level) && bytes > 0).then(|| bytes / 2 / rings)
    };
    pages(cuts.iter().filter_map(share).min())
}

/// Rounds to whole pages, at least a few; no limit where the cache is unknown.
fn ends(case: &PlacementCase, state: &Placement<'_>, edge: &EdgeShape) -> [usize; 2] {
    [edge.from, edge.to].map(|block| state.places[case.unit_of[block]])
}

fn pages(bytes: Option<u64>) -> usize {
    bytes.map_or(usize::MAX, |bytes| {
        let whole = bytes / PAGE_BYTES * PAGE_BYTES;
        usize::try_from(whole.max(LEAST_RING_BYTES)).unwrap_or(usize::MAX)
    })
}

/// Names a partition after its block with the most work.
fn unused_name(others: &[Partition], case: &PlacementCase, blocks: &[usize]) -> String {
    let work = |block: &&usize| case.work(**block);
    let mut first = blocks[0];
    for block in blocks {
        if work(&block) > work(&&first) {
            first = *block;
        }
    }
    Partition::unused_name(others, &case.shape.blocks[first].name)
}
