//! Round trips as text.

use super::TripArgs;
use crate::verbs::bench::refusals;
use millstream_lab::packets::TripTable;
use millstream_lab::packets::round_trips::{QUANTILES, TripLine};
use millstream_measure::picture::{draw, short_spread, short_time};
use std::fmt::Write;

/// All rows, the repetitions of each together.
pub fn table(args: &TripArgs, table: &TripTable) -> String {
    let class =
        args.ground.seats.fifo().map_or("SCHED_OTHER".to_owned(), |p| format!("SCHED_FIFO {p}"));
    let pace = match args.probes_pps() {
        Some(pps) => format!("{pps} probes a second by the clock, from when each was due"),
        None => "one after the other".to_owned(),
    };
    let mut text = format!("\nround trips, frames of {} bytes, {pace}, {class}\n", args.size);
    text += "                                 p50       p90       p99     p99.9       max   \
             to kernel UDP   CPU    lost\n";
    let mut load_pps = 0.0;
    for line in &table.lines {
        if line.load_pps != load_pps {
            load_pps = line.load_pps;
            let _ = writeln!(text, "beside {:.0} thousand packets/s of load", load_pps / 1e3);
        }
        write_line(&mut text, line);
    }
    text += &refusals(table.lines.iter().map(|line| (&*line.name, line.refused.as_deref())));
    if args.histograms {
        for line in table.lines.iter().filter(|line| !line.runs.is_empty()) {
            let _ = write!(text, "\n{}\n{}", line.name, draw(&line.histogram));
        }
    }
    text
}

fn write_line(text: &mut String, line: &TripLine) {
    if line.runs.is_empty() {
        return;
    }
    let _ = write!(text, "{:<26}", line.name);
    for share in QUANTILES {
        let _ = write!(text, " {:>9}", short_time(line.histogram.quantile_ns(share)));
    }
    let ratio = line.ratio.map_or(String::new(), |ratio| short_spread(&ratio));
    let cpu = line.cpu_share.unwrap_or(0.0) * 100.0;
    let _ = write!(text, "  {ratio:>16} {cpu:>4.0} % {:>5}", line.lost);
    if line.load_pps > 0.0 {
        let offered = line.load_pps * line.histogram.count() as f64;
        let _ = (offered > 0.0).then(|| write!(text, "   load taken {}", line.load_sent));
    }
    text.push('\n');
}
