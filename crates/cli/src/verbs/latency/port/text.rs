//! Round trips through a port as text.

use super::Args;
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
    let names = table.lines.iter().map(|line| line.case.name());
    let width = names.map(|name| name.chars().count()).max().unwrap_or_default();
    let _ = writeln!(
        text,
        "{:width$} {:>8} {:>8} {:>16} {:>8} {:>8} {:>16} {:>8} {:>5} {:>5}",
        "", "p50", "by", "over it", "p99", "by", "over it", "max", "busy", "lost"
    );
    table.lines.iter().for_each(|line| write_line(&mut text, line, width));
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

fn write_line(text: &mut String, line: &CaseResults, width: usize) {
    let came = |quantile| {
        let came_ns = came_ns(&line.histogram, line.lost, quantile);
        came_ns.map_or("-".to_owned(), short_time)
    };
    let _ = write!(text, "{:<width$}", line.case.name());
    for (quantile, against) in [(0.5, line.median), (0.99, line.tail)] {
        let [by, over] =
            against.map_or_else(Default::default, |Against { predicted_ns, ratio }| {
                [short_time(predicted_ns as u64), short_spread(&ratio)]
            });
        let _ = write!(text, " {:>8} {by:>8} {over:>16}", came(quantile));
    }
    let busy = line.busy * 100.0;
    let _ = writeln!(text, " {:>8} {busy:>3.0} % {:>5}", came(1.0), line.lost);
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
