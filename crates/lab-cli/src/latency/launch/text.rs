//! Launch times as text.

use super::Args;
use crate::bench::refusals;
use crate::table::Table;
use millstream_lab::packets::launch::{LaunchLine, LaunchTable};
use millstream_measure::picture::short_time;

/// All rows, the repetitions of each together.
pub fn table(args: &Args, table: &LaunchTable) -> String {
    let time = |seconds: f64| short_time((seconds * 1e9).round() as u64);
    let mut text = format!(
        "\npackets with launch times, {} bytes, every {}, handed over {} before in batches of {}\n",
        args.size,
        time(args.interval),
        time(args.lead),
        args.batch
    );
    let offset = |share| {
        move |line: &LaunchLine| {
            line.offsets.quantile_ns(share).map_or("-".to_owned(), |ns| {
                let sign = if ns < 0 { "-" } else { "" };
                format!("{sign}{}", short_time(ns.unsigned_abs()))
            })
        }
    };
    let measured: Vec<_> = table.lines.iter().filter(|line| line.sent > 0).collect();
    text += &Table::of(measured.iter().copied())
        .left("", |line| line.via.name())
        .right("min", offset(0.0))
        .right("p50", offset(0.5))
        .right("p99", offset(0.99))
        .right("max", offset(1.0))
        .right("early", |line| line.early)
        .right("in time", |line| line.in_time())
        .right("late", |line| line.late)
        .right("dropped", |line| line.dropped)
        .right("lost", |line| line.lost)
        .right("CPU", |line| short_time(line.cpu_ns.unwrap_or(0.0) as u64))
        .text();
    text += &refusals(table.lines.iter().map(|line| (line.via.name(), line.refused.as_deref())));
    for line in measured.iter().filter(|line| line.refusals.total() > 0) {
        text += &format!(
            "{}: of the dropped packets, {} came too late to the queue, {} missed their time in \
             it\n",
            line.via.name(),
            line.refusals.invalid,
            line.refusals.missed
        );
    }
    text += &format!(
        "\nmin to max: from the launch time until the packet came out of the interface; negative: \
         before.\nearly, late: more than {} before or after it. dropped: by the queue. CPU: of the \
         sending thread,\nfor each packet.\n",
        time(args.tolerance)
    );
    text
}
