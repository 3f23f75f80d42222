//! Round trips through a port for people.

use super::Args;
use millstream_lab::packets::port::{Limit, Line, Table, Topology, came_ns};
use millstream_lab::picture::short_time;
use std::fmt::Write;

/// All rows, and what limits each.
pub fn table(args: &Args, table: &Table) -> String {
    let mut text = format!(
        "\nround trips through a port, probes of {} bytes, {} a second by the clock, from when \
         each was due\nbulk of {} bytes an IP packet, a queue of {} packets\n",
        args.size, args.rate, args.bulk_bytes, args.queue
    );
    let _ = writeln!(
        text,
        "{:36} {:>9} {:>9} {:>9} {:>10} {:>17} {:>6} {:>5}",
        "", "p50", "p99", "max", "p99 by", "measured over it", "busy", "lost"
    );
    table.lines.iter().for_each(|line| write_line(&mut text, line));
    text += "\n";
    for line in &table.lines {
        let _ = writeln!(text, "{}: {}", line.case.name(), limit(table, line));
    }
    text += "p99 by: that of separate ports, and the wait by the frames' times. busy: the port \
             with the bulk.\n";
    text
}

fn write_line(text: &mut String, line: &Line) {
    let _ = write!(text, "{:<36}", line.case.name());
    for quantile in [0.5, 0.99, 1.0] {
        let _ = write!(text, " {:>9}", short_time(came_ns(&line.histogram, line.lost, quantile)));
    }
    let ratio = line.ratio.map_or(String::new(), |ratio| {
        format!("{:.2} ({:.2}-{:.2})", ratio.median, ratio.min, ratio.max)
    });
    let _ = writeln!(
        text,
        " {:>10} {ratio:>17} {:>4.0} % {:>5}",
        short_time(line.tail_predicted_ns as u64),
        line.busy * 100.0,
        line.lost
    );
}

/// Whether the tail is bounded, and by what.
fn limit(table: &Table, line: &Line) -> String {
    let bound = line.bound;
    let wait = short_time(bound.wait_ns as u64);
    let said = match bound.by {
        Limit::Nothing => "waits for nobody; its tail is the machine's".to_owned(),
        Limit::Burst => {
            format!("bounded by the burst, {} x {}", bound.frames, frame(line, &wait))
        }
        Limit::Queue => {
            let slow = short_time((bound.wait_ns / line.busy) as u64);
            let slow = if line.case.is_full() && line.busy > 0.0 {
                format!(" ({slow} at the rate that it had)")
            } else {
                String::new()
            };
            format!(
                "bounded by the queue, {} x {}{slow}, and then lost",
                bound.frames,
                frame(line, &wait)
            )
        }
        Limit::Wire => format!("bounded by the one frame on the wire, {wait}"),
    };
    if line.case.topology == Topology::Separate || line.histogram.count() <= line.lost {
        return said;
    }
    let apart_ns = table.longest_apart_ns(line.case.rate_bps) as f64;
    let over = line.longest_ns() as f64 / (apart_ns + bound.wait_ns);
    format!("{said}; the longest was {over:.2} of that and the longest apart")
}

fn frame(line: &Line, wait: &str) -> String {
    format!("{} = {wait}", short_time(line.case.frame_ns() as u64))
}
