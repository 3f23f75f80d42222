//! Round trips as text.

use super::TripArgs;
use crate::bench::refusals;
use crate::output::percent;
use crate::table::Table;
use millstream_lab::packets::TripTable;
use millstream_lab::packets::round_trips::QUANTILES;
use millstream_measure::picture::{draw, short_spread, short_time};
use std::fmt::Write;

/// All rows, the repetitions of each together.
pub fn table(args: &TripArgs, topology: &str, table: &TripTable) -> String {
    let class =
        args.ground.seats.fifo().map_or("SCHED_OTHER".to_owned(), |p| format!("SCHED_FIFO {p}"));
    let pace = match args.probes_pps() {
        Some(pps) => format!("{pps} probes a second by the clock, from when each was due"),
        None => "one after the other".to_owned(),
    };
    let size = args.size;
    let mut text =
        format!("\nround trips over {topology}, frames of {size} bytes, {pace}, {class}\n");
    let measured = || table.lines.iter().filter(|line| !line.runs.is_empty());
    let mut rows = Table::of(measured()).left("", |line| &line.name);
    for (share, name) in QUANTILES.into_iter().zip(["p50", "p90", "p99", "p99.9", "max"]) {
        rows = rows.right(name, |line| short_time(line.histogram.quantile_ns(share)));
    }
    if !args.load.is_empty() {
        rows = rows
            .right("beside", |line| format!("{:.0} kpps", line.load_pps / 1e3))
            .right("load taken", |line| line.load_sent);
    }
    text += &rows
        .right("to kernel UDP", |line| {
            line.ratio.map_or(String::new(), |ratio| short_spread(&ratio))
        })
        .right("CPU", |line| percent(line.cpu_share.unwrap_or(0.0)))
        .right("lost", |line| line.lost)
        .text();
    text += &refusals(table.lines.iter().map(|line| (&*line.name, line.refused.as_deref())));
    if args.histograms {
        for line in measured() {
            let _ = write!(text, "\n{}\n{}", line.name, draw(&line.histogram));
        }
    }
    text
}
