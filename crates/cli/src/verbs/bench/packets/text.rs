//! The tables of `bench packets` as text.

use millstream_lab::packets::measure::RowMeasurement;
use millstream_lab::packets::testbed::SideSetup;
use millstream_lab::packets::{BASE, PacketTable, RowResults, Workload};
use millstream_measure::picture::short_ratio;
use std::collections::BTreeMap;
use std::fmt::Write;

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
    text += "                            received thousand/s   ratio to kernel UDP            \
             CPU ns/packet  CPUs used  calls/packet\n";
    text += "                             min  median    max   median (min-max)     Gbit/s   \
             send   recv  send recv   send   recv   limited by\n";
    for line in &table.lines {
        write_line(&mut text, line, table.frame_bytes);
    }
    if layout == "split" {
        text += &warning(table);
    }
    text += &refusals(table.lines.iter().map(|line| (&*line.name, line.refused.as_deref())));
    for line in &table.lines {
        text += &line.untraced.as_deref().map_or(String::new(), |why| {
            format!("  {}: system calls were not counted: {why}\n", line.name)
        });
    }
    let lost: Vec<_> = table.lines.iter().filter_map(losses).collect();
    if !lost.is_empty() {
        text += "  lost or refused, all repetitions:\n";
        lost.iter().for_each(|line| text += line);
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

/// The warning that other processes had the base's CPU, so that the ratios are meaningless.
fn warning(table: &PacketTable) -> String {
    let base = table.lines.iter().find(|line| line.name == BASE);
    let cpus = base.and_then(|line| line.median(|run| Some(run.sender.cpus())));
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

fn write_line(text: &mut String, line: &RowResults, frame_bytes: usize) {
    let (Some(rate), Some(ratio)) = (line.rate_pps, line.ratio) else { return };
    let kilo = [rate.min, rate.median, rate.max].map(|pps| format!("{:.0}", pps / 1e3));
    let spread = format!("({}-{})", short_ratio(ratio.min), short_ratio(ratio.max));
    let cpu = [
        line.median(|run| cost(run.sender.cpu_ns_per_packet(), run.sender.packets)),
        line.median(|run| cost(run.receiver.cpu_ns_per_packet(), run.receiver.packets)),
    ]
    .map(|ns| ns.map_or("-".to_owned(), |ns| format!("{ns:.0}")));
    let cpus =
        [line.median(|run| Some(run.sender.cpus())), line.median(|run| Some(run.receiver.cpus()))]
            .map(|cpus| cpus.map_or("-".to_owned(), |cpus| format!("{cpus:.2}")));
    // The kernel's count replaces the missing count of a link.
    let traced = |of: fn(&RowMeasurement) -> Option<f64>| line.traced.as_ref().and_then(of);
    let calls = [
        line.median(|run| run.sender.calls_per_packet)
            .or(traced(|run| run.sender.traced_per_packet)),
        line.median(|run| run.receiver.calls_per_packet)
            .or(traced(|run| run.receiver.traced_per_packet)),
    ]
    .map(|calls| calls.map_or("-".to_owned(), |calls| format!("{calls:.3}")));
    let limit = line.typical().map_or("", |run| run.limit.name());
    let _ = writeln!(
        text,
        "{:<25} {:>6} {:>7} {:>6}   {:>6} {:<13}  {:>6.1} {:>6} {:>6}  {:>4} {:>4}  {:>5}  \
         {:>5}   {limit}",
        line.name,
        kilo[0],
        kilo[1],
        kilo[2],
        short_ratio(ratio.median),
        spread,
        line.gbit_s(frame_bytes).unwrap_or(0.0),
        cpu[0],
        cpu[1],
        cpus[0],
        cpus[1],
        calls[0],
        calls[1],
    );
}

/// CPU time per packet; `None` without packets.
fn cost(ns: f64, packets: u64) -> Option<f64> {
    (packets > 0).then_some(ns)
}

/// The losses in a row, by cause.
fn losses(line: &RowResults) -> Option<String> {
    let mut causes = BTreeMap::new();
    let mut sent = 0;
    for (_, run) in &line.runs {
        sent += run.sent;
        for (name, count) in &run.events {
            *causes.entry(name.as_str()).or_insert(0) += count;
        }
        if run.unaccounted * 1000 > run.sent {
            *causes.entry("between the two").or_insert(0) += run.unaccounted;
        }
    }
    let part = |(name, count): (&str, u64)| format!("{name} {count}");
    let causes: Vec<_> = causes.into_iter().map(part).collect();
    let list = causes.join(", ");
    (!causes.is_empty()).then(|| format!("    {}: of {sent} sent: {list}\n", line.name))
}
