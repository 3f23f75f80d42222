//! Round trips through a port as text.

use super::Args;
use crate::output::percent;
use crate::table::Table;
use millstream_lab::packets::port::{
    Against, CaseResults, PortTable, PortTopology, QueueLimit, came_ns,
};
use millstream_measure::picture::{short_spread, short_time};
use std::fmt::Write;

/// All rows, and their limits.
pub fn table(args: &Args, table: &PortTable) -> String {
    let mut text = format!(
        "\nround trips through a port, probes of {} bytes, {} a second by the clock, from when \
         each was due\nbulk of {} bytes an IP packet, a queue of {} packets\n",
        args.size, args.packet_rate, args.bulk_size, args.queue
    );
    text += &rows(table);
    text += "\n";
    for line in &table.lines {
        let _ = writeln!(text, "{}: {}", line.case.name(), limit(table, line));
    }
    text += "\np50, p99, max: of those that came back, all repetitions together. by: predicted, \
             the round\ntrips over separate ports of the same repetition convolved with the waits \
             by the frames' times;\nthe median of the repetitions. over it: measured over \
             predicted within a repetition, median (least\nto most). \
             busy: the port with the bulk.\n";
    text
}

fn rows(table: &PortTable) -> String {
    let came = |line: &CaseResults, quantile| {
        came_ns(&line.histogram, line.lost, quantile).map_or("-".to_owned(), short_time)
    };
    let by = |against: Option<Against>| {
        against.map_or(String::new(), |against| short_time(against.predicted_ns as u64))
    };
    let over = |against: Option<Against>| {
        against.map_or(String::new(), |against| short_spread(&against.ratio))
    };
    Table::of(&table.lines)
        .left("", |line| line.case.name())
        .right("p50", |line| came(line, 0.5))
        .right("by", |line| by(line.median))
        .right("over it", |line| over(line.median))
        .right("p99", |line| came(line, 0.99))
        .right("by", |line| by(line.tail))
        .right("over it", |line| over(line.tail))
        .right("max", |line| came(line, 1.0))
        .right("busy", |line| percent(line.busy))
        .right("lost", |line| line.lost)
        .text()
}

/// Whether the tail is bounded, and by what.
fn limit(table: &PortTable, line: &CaseResults) -> String {
    let bound = line.bound;
    let wait = short_time(bound.wait_ns as u64);
    let said = match bound.by {
        QueueLimit::Nothing => "no queue to wait in; the tail is the machine's".to_owned(),
        QueueLimit::Burst => {
            format!("bounded by the burst, {} x {}", bound.frames, frame(line, &wait))
        }
        QueueLimit::Queue => {
            let slow = short_time((bound.wait_ns / line.busy) as u64);
            let slow = if line.case.is_full() && line.busy > 0.0 {
                format!(" ({slow} at its actual rate)")
            } else {
                String::new()
            };
            format!(
                "bounded by the queue, {} x {}{slow}, and then lost",
                bound.frames,
                frame(line, &wait)
            )
        }
        QueueLimit::Wire => format!("bounded by the one frame on the wire, {wait}"),
    };
    let apart_ns = table.longest_apart_ns(line.case.rate_bps);
    match (apart_ns, line.longest_ns()) {
        (Some(apart_ns), Some(longest_ns)) if line.case.topology != PortTopology::Separate => {
            let over = longest_ns as f64 / (apart_ns as f64 + bound.wait_ns);
            format!(
                "{said}; the longest was {over:.2} times that bound plus the longest on \
                 separate ports"
            )
        }
        _ => said,
    }
}

fn frame(line: &CaseResults, wait: &str) -> String {
    format!("{} = {wait}", short_time(line.case.frame_ns() as u64))
}
