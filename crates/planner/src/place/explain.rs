//! A plan as text.

use super::prediction::{EdgeLoad, PartitionLoad, Prediction};
use super::{Alternative, Placed};
use std::collections::BTreeSet;
use std::fmt::Write;

/// Characters of a full bar.
const BAR: usize = 20;
/// Cuts that are listed one by one.
const CUTS: usize = 12;
/// A share of the load that counts as nearly all.
const NEARLY_ALL: f64 = 0.9;

impl Placed {
    /// Describes the plan, its bottleneck, the reason of each cut, and the next best plan.
    #[must_use]
    pub fn words(&self) -> String {
        let prediction = &self.prediction;
        let mut text = headline(prediction);
        text.push('\n');
        text.push_str(&table(prediction));
        text.push('\n');
        let _ = writeln!(text, "limit    {}", limit(prediction));
        for (index, line) in cuts(prediction).iter().enumerate() {
            let _ = writeln!(text, "{:<8} {line}", if index == 0 { "cuts" } else { "" });
        }
        for (index, line) in next(prediction).iter().enumerate() {
            let _ = writeln!(text, "{:<8} {line}", if index == 0 { "else" } else { "" });
        }
        let buffers = &self.plan.buffers;
        let _ = writeln!(
            text,
            "buffers  {} KiB between blocks of a partition, {} KiB between partitions",
            buffers.inside_bytes >> 10,
            buffers.between_bytes >> 10
        );
        text
    }
}

pub(super) fn headline(prediction: &Prediction) -> String {
    let Prediction { measured, exact, ns_per_item, single_ns_per_item, .. } = prediction;
    let count = prediction.partitions.len();
    let mut text = format!("{count} partition{}: ", if count == 1 { "" } else { "s" });
    let gain = single_ns_per_item / ns_per_item;
    if *measured {
        let per = &prediction.per_item_of;
        let rate = 1e9 / ns_per_item;
        let _ = write!(text, "{} for an item of `{per}`, {}", time(*ns_per_item), per_s(rate, ""));
    } else {
        text.push_str("no costs measured, each block taken to cost what it estimates");
    }
    if count > 1 {
        let _ = write!(text, "; {gain:.2} times one CPU");
    }
    let proof = if *exact { "no plan is better by the model" } else { "found by a heuristic" };
    let _ = writeln!(text, "; {proof}");
    text
}

fn table(prediction: &Prediction) -> String {
    let longest = prediction.partitions.iter().map(|load| load.name.chars().count()).max();
    let width = longest.unwrap_or(0).max("partition".len());
    let mut text = format!(
        "{:<width$}  {:>3}  {:<BAR$}  {:>5}  {:>9}  {:>9}  {:>9}  blocks\n",
        "partition", "CPU", "load", "", "work", "talk", "shared"
    );
    for (index, load) in prediction.partitions.iter().enumerate() {
        let share = share_of(load, prediction);
        let own = |block: &&super::BlockLoad| block.partition == index;
        let names = prediction.blocks.iter().filter(own).map(|block| block.name.as_str());
        let _ = writeln!(
            text,
            "{:<width$}  {:>3}  {:<BAR$}  {:>4.0}%  {:>9}  {:>9}  {:>9}  {}",
            load.name,
            load.cpu,
            bar(share),
            share * 100.0,
            time(load.work_ns),
            time(load.talk_ns),
            time(load.shared_ns),
            some(&names.collect::<Vec<_>>(), 8),
        );
    }
    text
}

/// Lists a few names, and the number of the others.
fn some(names: &[&str], most: usize) -> String {
    if names.len() <= most {
        return names.join(" ");
    }
    format!("{} … ({} blocks)", names[..most - 1].join(" "), names.len())
}

pub(super) fn share_of(load: &PartitionLoad, prediction: &Prediction) -> f64 {
    if prediction.ns_per_item > 0.0 { load.total_ns() / prediction.ns_per_item } else { 0.0 }
}

fn bar(share: f64) -> String {
    let eighths = (share.clamp(0.0, 1.0) * (BAR * 8) as f64).round() as usize;
    let part = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"][eighths % 8];
    format!("{}{part}", "█".repeat(eighths / 8))
}

/// Describes the change that would make the graph faster.
pub(super) fn limit(prediction: &Prediction) -> String {
    let name = &prediction.bottleneck;
    let Some(index) = prediction.partitions.iter().position(|load| load.name == *name) else {
        return "nothing: there are no blocks".to_owned();
    };
    let load = &prediction.partitions[index];
    let inside = prediction.blocks.iter().filter(|block| block.partition == index);
    let count = inside.clone().count();
    let heaviest = inside.max_by(|a, b| a.work_ns.total_cmp(&b.work_ns));
    let Some(heaviest) = heaviest else { return "nothing".to_owned() };
    let share = heaviest.work_ns / prediction.ns_per_item.max(f64::MIN_POSITIVE);
    let all = prediction.partitions.iter().all(|load| share_of(load, prediction) > NEARLY_ALL);
    if count == 1 || share > NEARLY_ALL {
        return format!(
            "`{}` alone is {:.0} % of the fullest CPU ({}): only a faster or a divided block gains \
             more",
            heaviest.name,
            share * 100.0,
            load.cpu
        );
    }
    let why = if all && prediction.partitions.len() > 1 {
        "all CPUs of the plan are nearly full: only less work or more CPUs gain more"
    } else if prediction.partitions.len() == 1 {
        "another CPU would not bring enough, see below"
    } else {
        "its blocks do not divide more evenly at a price that pays"
    };
    format!(
        "`{name}` on CPU {}, whose heaviest block is `{}` ({:.0} %): {why}",
        load.cpu,
        heaviest.name,
        share * 100.0
    )
}

/// Explains each cut: its cost, and the cost without it.
fn cuts(prediction: &Prediction) -> Vec<String> {
    let mut cuts: Vec<&EdgeLoad> =
        prediction.edges.iter().filter(|edge| edge.cut.is_some()).collect();
    if cuts.is_empty() {
        return vec!["none: items stay on one CPU".to_owned()];
    }
    let cost = |edge: &EdgeLoad| edge.cut.as_ref().map_or(0.0, |cut| cut.ns);
    cuts.sort_by(|a, b| cost(b).total_cmp(&cost(a)));
    let total: f64 = cuts.iter().map(|edge| cost(edge)).sum();
    let mut lines: Vec<String> = cuts.iter().take(CUTS).map(|edge| cut(prediction, edge)).collect();
    if cuts.len() > CUTS {
        let more = cuts.len() - CUTS;
        lines.push(format!("and {more} more; all together cost {} an item", time(total)));
    }
    lines
}

fn cut(prediction: &Prediction, edge: &EdgeLoad) -> String {
    let cut = edge.cut.as_ref().expect("only cuts are told");
    let (from, to) = (&prediction.blocks[edge.writer].name, &prediction.blocks[edge.reader].name);
    let mut text = format!("{from} -> {to}: ");
    if prediction.measured {
        let rate = edge.bytes * 1e9 / prediction.ns_per_item;
        let _ = write!(text, "{} ", per_s(rate, "B"));
    }
    let _ = write!(text, "across {}, {}", cut.distance, share(cut.ns, prediction));
    match &cut.without {
        None => text.push_str("; fixed by hand"),
        Some(other) => {
            let _ = write!(text, "; with `{}` on CPU {} too, ", other.block, other.cpu);
            text.push_str(&against(prediction, other));
        }
    }
    text
}

/// Formats a cost as a share of the time per item.
fn share(ns: f64, prediction: &Prediction) -> String {
    let percent = ns / prediction.ns_per_item.max(f64::MIN_POSITIVE) * 100.0;
    if prediction.measured { format!("{} ({percent:.1} %)", time(ns)) } else { "cheap".to_owned() }
}

/// Compares an alternative.
fn against(prediction: &Prediction, other: &Alternative) -> String {
    let ratio = |now: f64, then: f64| (then / now.max(f64::MIN_POSITIVE) - 1.0) * 100.0;
    let slower = ratio(prediction.ns_per_item, other.ns_per_item);
    if slower > 0.05 {
        return format!("an item would take {slower:.1} % longer");
    }
    let more = ratio(prediction.cpu_ns_per_item, other.cpu_ns_per_item);
    match () {
        () if slower < -0.05 => format!("an item would take {:.1} % less time", -slower),
        () if more > 0.05 => format!("no faster, and {more:.1} % more CPU time"),
        () if other.cpus > cpus_of(prediction) => "no faster with one CPU more".to_owned(),
        () => "the same".to_owned(),
    }
}

fn cpus_of(prediction: &Prediction) -> usize {
    prediction.partitions.iter().map(|load| load.cpu).collect::<BTreeSet<usize>>().len()
}

/// Describes the nearest plans: one block elsewhere, and other numbers of CPUs.
fn next(prediction: &Prediction) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(next) = &prediction.next_best {
        let what = format!("next best: `{}` on CPU {}, ", next.block, next.cpu);
        lines.push(what + &against(prediction, next));
    }
    let used = prediction.ladder.iter().filter(|step| {
        let change = step.ns_per_item / prediction.ns_per_item.max(f64::MIN_POSITIVE);
        (change - 1.0).abs() > 1e-6
    });
    let steps: Vec<String> = used
        .map(|step| {
            let change = (step.ns_per_item / prediction.ns_per_item - 1.0) * 100.0;
            let word = if change > 0.0 { "slower" } else { "faster" };
            format!("{}: {:.1} % {word}", step.cpus, change.abs())
        })
        .collect();
    if !steps.is_empty() {
        lines.push(format!("other numbers of CPUs: {}", steps.join(", ")));
    }
    if lines.is_empty() {
        lines.push("nothing: no block may move".to_owned());
    }
    lines
}

/// Formats a time with three digits.
pub(super) fn time(ns: f64) -> String {
    match ns {
        ns if ns >= 1e6 => format!("{:.3} ms", ns / 1e6),
        ns if ns >= 1e4 => format!("{:.1} us", ns / 1e3),
        ns if ns >= 100.0 => format!("{ns:.0} ns"),
        ns if ns >= 10.0 => format!("{ns:.1} ns"),
        0.0 => "-".to_owned(),
        ns => format!("{ns:.2} ns"),
    }
}

/// Formats a rate in a unit, `` for items.
pub(super) fn per_s(rate: f64, unit: &str) -> String {
    match rate {
        rate if rate >= 1e9 => format!("{:.2} G{unit}/s", rate / 1e9),
        rate if rate >= 1e6 => format!("{:.1} M{unit}/s", rate / 1e6),
        rate if rate >= 1e3 => format!("{:.1} k{unit}/s", rate / 1e3),
        rate => format!("{rate:.0} {unit}/s"),
    }
}
