//! The tables of `bench packets` as text.

use super::record::calls_per_packet;
use crate::output::Join;
use crate::table::Table;
use millstream_lab::packets::WindowCounts;
use millstream_lab::packets::measure::RowMeasurement;
use millstream_lab::packets::testbed::SideSetup;
use millstream_lab::packets::{BASE, PacketTable, RowResults, Workload};
use millstream_stats::short_ratio;
use std::collections::BTreeMap;

/// Share of its CPU that a sender without competition uses at least.
const CPUS_MIN: f64 = 0.8;

/// The places of both sides, in one line.
pub fn places(places: &[SideSetup; 2]) -> String {
    let place = |place: &SideSetup| {
        let interface = place.interface.as_deref().unwrap_or("loopback");
        let cpu = place.cpu.map_or("any CPU".to_owned(), |cpu| format!("CPU {cpu}"));
        format!("{interface} {} on {cpu}", place.address)
    };
    format!("place   {} > {}", place(&places[0]), place(&places[1]))
}

/// `split`, or `same`.
pub fn layout(places: &[SideSetup; 2]) -> &'static str {
    if places[0].cpu == places[1].cpu { "same" } else { "split" }
}

/// One packet size, measured in a layout.
pub fn table(workload: Workload, table: &PacketTable, layout: &str) -> String {
    let mut text = format!("\n{}, frames of {} bytes\n", workload.name(), table.frame_bytes);
    text += &rows(table);
    if layout == "split" {
        text += &warning(table);
    }
    text += &refusals(table.lines.iter().map(|line| (&*line.name, line.taken.refused.as_deref())));
    for line in &table.lines {
        text += &line.untraced.as_deref().map_or(String::new(), |why| {
            format!("  {}: system calls were not counted: {why}\n", line.name)
        });
    }
    let lost: String = table.lines.iter().filter_map(losses).collect();
    if !lost.is_empty() {
        text += &format!("  lost or refused, all repetitions:\n{lost}");
    }
    text
}

/// The reason why a link that does not count its own system calls has none in the tables.
pub fn untraced(why: &str) -> String {
    format!(
        "\ncalls/packet is - where the link does not count its calls: the kernel cannot count \
         them here ({why})\n"
    )
}

/// The least that a system call can cost. Calls that do something cost more to enter, too: what
/// they need has left the caches.
pub fn call(call_ns: f64) -> String {
    format!("\nan empty system call takes {call_ns:.0} ns here\n")
}

/// The warning that other processes had the base's CPU, so that the ratios are meaningless.
fn warning(table: &PacketTable) -> String {
    let base = table.lines.iter().find(|line| line.name == BASE);
    let cpus = base.and_then(|line| line.taken.median(|run| Some(run.sender.cpus())));
    match cpus {
        Some(cpus) if cpus < CPUS_MIN => format!(
            "  the sender of {BASE} had {:.0} % of its CPU, so these ratios are unreliable: stop \
             other programs, or give --class fifo:50\n",
            cpus * 100.0
        ),
        _ => String::new(),
    }
}

/// Rows that could not be measured, by reason.
pub fn refusals<'a>(lines: impl Iterator<Item = (&'a str, Option<&'a str>)>) -> String {
    let mut reasons = BTreeMap::<_, Vec<_>>::new();
    for (name, reason) in lines {
        reasons.entry(reason).or_default().push(name);
    }
    let text = |(reason, names): (Option<&str>, Vec<&str>)| {
        reason.map(|reason| format!("  not measured: {reason}\n    ({})\n", names.join("; ")))
    };
    reasons.into_iter().filter_map(text).collect()
}

/// A side of a row.
pub(super) type Side = fn(&RowMeasurement) -> &WindowCounts;

/// System calls per packet, as text.
pub(super) fn calls(line: &RowResults, side: Side) -> String {
    let traced = line.traced.as_ref().map(side);
    let calls = calls_per_packet(line.taken.median(|run| side(run).calls_per_packet), traced);
    or_dash(calls.map(|calls| format!("{calls:.3}")))
}

/// A figure, or a dash where there is none.
pub(super) fn or_dash(figure: Option<String>) -> String {
    figure.unwrap_or_else(|| "-".to_owned())
}

/// The measured rows.
fn rows(table: &PacketTable) -> String {
    let kilo = |pps: f64| format!("{:.0}", pps / 1e3);
    let cost = |line: &RowResults, side: Side| {
        let ns = |run: &RowMeasurement| {
            let side = side(run);
            (side.packets > 0).then(|| side.cpu_ns_per_packet())
        };
        or_dash(line.taken.median(ns).map(|ns| format!("{ns:.0}")))
    };
    let cpus = |line: &RowResults, side: Side| {
        or_dash(line.taken.median(|run| Some(side(run).cpus())).map(|cpus| format!("{cpus:.2}")))
    };
    let shown = table.lines.iter().filter_map(|line| Some((line, line.rate_pps?, line.ratio?)));
    Table::of(shown)
        .left("", |(line, ..)| &line.name)
        .right("thousand/s\nmin", |(_, rate, _)| kilo(rate.min))
        .right("received\nmedian", |(_, rate, _)| kilo(rate.median))
        .right("\nmax", |(_, rate, _)| kilo(rate.max))
        .left("to kernel UDP\nmedian (min-max)", |(.., ratio)| {
            let [median, min, max] = [ratio.median, ratio.min, ratio.max].map(short_ratio);
            format!("{median} ({min}-{max})")
        })
        .right("\nGbit/s", |(line, ..)| {
            format!("{:.1}", line.gbit_s(table.frame_bytes).unwrap_or(0.0))
        })
        .right("CPU ns\nsend", |(line, ..)| cost(line, |run| &run.sender))
        .right("/packet\nrecv", |(line, ..)| cost(line, |run| &run.receiver))
        .right("CPUs\nsend", |(line, ..)| cpus(line, |run| &run.sender))
        .right("used\nrecv", |(line, ..)| cpus(line, |run| &run.receiver))
        .right("calls\nsend", |(line, ..)| calls(line, |run| &run.sender))
        .right("/packet\nrecv", |(line, ..)| calls(line, |run| &run.receiver))
        .left("\nlimited by", |(line, ..)| line.typical().map_or("", |run| run.limit.name()))
        .text()
}

/// The losses in a row, by cause.
fn losses(line: &RowResults) -> Option<String> {
    let mut causes = BTreeMap::new();
    let mut sent = 0;
    for run in line.taken.outcomes() {
        sent += run.sent;
        for (name, count) in &run.events {
            *causes.entry(name.as_str()).or_insert(0) += count;
        }
        if run.unaccounted * 1000 > run.sent {
            *causes.entry("between the two").or_insert(0) += run.unaccounted;
        }
    }
    let list = causes.iter().map(|(name, count)| format!("{name} {count}")).join(", ");
    (!list.is_empty()).then(|| format!("    {}: of {sent} sent: {list}\n", line.name))
}
