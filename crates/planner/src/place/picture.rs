//! A plan as a picture: blocks in their partitions, partitions in groups of CPUs.

mod dot;
mod layout;
mod paint;
mod svg;

use super::case::PlacementCase;
use super::machine::{Cpu, LEVELS};
use super::prediction::Prediction;
use millstream_flow::Shape;
use serde::Serialize;
use std::collections::BTreeSet;

/// CPUs that share a resource, as far as the plan uses them.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct CpuGroup {
    /// The shared resource.
    pub label: String,
    /// The nesting depth: 0 for a node, 1 for an L3, 2 for an L2, 3 for a core.
    pub depth: usize,
    /// The partitions on them, by position in the plan, from the first in the order of items.
    pub partitions: Vec<usize>,
}

/// Returns the frames worth drawing, from the outermost; each holds a run of [`order`].
pub(super) fn frames(case: &PlacementCase, prediction: &Prediction) -> Vec<CpuGroup> {
    let machine = &case.problem.machine;
    let cpu_of = |partition: usize| {
        let number = prediction.partitions[partition].cpu;
        &machine.cpus[machine.position(number).unwrap_or(0)]
    };
    let order = order(case, prediction, &cpu_of);
    let mut frames: Vec<CpuGroup> = Vec::new();
    for level in (0..LEVELS).rev() {
        let mut seen = BTreeSet::new();
        for group in order.iter().map(|partition| cpu_of(*partition).groups[level]) {
            if !seen.insert(group) {
                continue;
            }
            let inside = |partition: &usize| cpu_of(*partition).groups[level] == group;
            let partitions: Vec<usize> = order.iter().copied().filter(inside).collect();
            let cpus: Vec<&Cpu> =
                machine.cpus.iter().filter(|cpu| cpu.groups[level] == group).collect();
            if let Some(label) = label(level, &cpus, machine.len()) {
                frames.push(CpuGroup { label, depth: LEVELS - 1 - level, partitions });
            }
        }
    }
    frames
}

/// Returns the resource that the CPUs of a group share, if it distinguishes them.
fn label(level: usize, cpus: &[&Cpu], all: usize) -> Option<String> {
    let numbers: millstream_cpu::CpuSet = cpus.iter().map(|cpu| cpu.number).collect();
    let first = cpus.first()?;
    let core = cpus.iter().all(|cpu| cpu.groups[0] == first.groups[0]);
    let what = match level {
        3 if cpus.len() < all => format!("node {}", first.node),
        2 if first.l3_bytes > 0 => format!("L3 {}", bytes(first.l3_bytes)),
        1 if first.l2_bytes > 0 && !core => format!("L2 {}", bytes(first.l2_bytes)),
        0 if cpus.len() > 1 => format!("core, L2 {}", bytes(first.l2_bytes)),
        _ => return None,
    };
    Some(format!("{what} · CPU{} {numbers}", if cpus.len() == 1 { "" } else { "s" }))
}

/// Orders partitions so that those of one group are consecutive, and groups by the flow of items.
fn order<'a>(
    case: &PlacementCase,
    prediction: &Prediction,
    cpu_of: &impl Fn(usize) -> &'a Cpu,
) -> Vec<usize> {
    let ranks = case.shape.ranks();
    let count = prediction.partitions.len();
    let first_of = |partition: usize| {
        let inside = prediction.blocks.iter().enumerate();
        let inside = inside.filter(|(_, block)| block.partition == partition);
        inside.map(|(block, _)| ranks[block]).min().unwrap_or(usize::MAX)
    };
    let firsts: Vec<usize> = (0..count).map(first_of).collect();
    let key = |partition: usize| {
        let mut key = Vec::new();
        for level in (0..LEVELS).rev() {
            let group = cpu_of(partition).groups[level];
            let inside = (0..count).filter(|other| cpu_of(*other).groups[level] == group);
            key.push(inside.map(|other| firsts[other]).min().unwrap_or(0));
            key.push(group);
        }
        key.push(firsts[partition]);
        key
    };
    let mut order: Vec<usize> = (0..count).collect();
    order.sort_by_cached_key(|partition| key(*partition));
    order
}

/// Returns the shape of the graph of a prediction.
fn shape_of(prediction: &Prediction) -> Shape {
    let blocks = prediction.blocks.iter().map(|block| millstream_flow::BlockShape {
        name: block.name.clone(),
        rate: millstream_flow::ItemRatio::ONE,
        ns_per_item: 0.0,
    });
    let edges = prediction.edges.iter().map(|edge| millstream_flow::EdgeShape {
        from: edge.writer,
        to: edge.reader,
        output: edge.from.clone(),
        input: edge.to.clone(),
        item_bytes: 0,
    });
    Shape { blocks: blocks.collect(), edges: edges.collect() }
}

/// Formats a size: `256 KiB` or `25 MiB`.
fn bytes(bytes: u64) -> String {
    match bytes >> 10 {
        kib if kib >= 1024 && kib % 1024 == 0 => format!("{} MiB", kib >> 10),
        kib if kib >= 1024 => format!("{:.2} MiB", kib as f64 / 1024.0),
        kib => format!("{kib} KiB"),
    }
}

/// Formats the bytes that pass a connection: per second where that is known, else per item.
fn flow(prediction: &Prediction, bytes: f64) -> String {
    if prediction.measured {
        super::explain::per_s(bytes * 1e9 / prediction.ns_per_item.max(f64::MIN_POSITIVE), "B")
    } else {
        format!("{bytes:.0} B/item")
    }
}
