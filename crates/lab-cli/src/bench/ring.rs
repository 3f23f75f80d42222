//! `millstream-lab bench ring`: items between two threads over the ring and over locked queues.

use crate::experiment::report;
use crate::live::Steps;
use crate::numbers::whole;
use crate::output::Report;
use crate::table::Table;
use millstream_lab::hand_over::{self, HandOver, QueueKind};
use millstream_stats::Summary;
use serde::Serialize;

/// Measures how many items a second pass from one thread to another.
///
/// Links and graphs are built on the lock-free ring. It is compared in turns with a queue behind a
/// mutex, one by one and in batches, and with the channel of Rust's standard library, one by one.
#[derive(clap::Args)]
pub struct Args {
    /// Number of items in each measurement.
    #[arg(long, value_name = "N", default_value_t = 1_000_000,
          value_parser = whole::<u64>(1..=1_000_000_000))]
    count: u64,

    /// Number of times to make all measurements.
    #[arg(long, value_name = "N", default_value_t = 7, value_parser = whole::<u64>(1..=1000))]
    repeat: u64,
}

/// Measures; prints a table.
pub fn run(args: Args) -> anyhow::Result<Report> {
    let rounds = args.repeat as usize;
    let mut steps = Steps::new(rounds * QueueKind::ALL.len());
    let all = hand_over::compare(args.count, rounds, |queue| {
        steps.next(|| queue.name().to_owned());
    });
    steps.end();
    let rate = |one: &HandOver| {
        let rate = Summary::of(&one.items_per_s).map_or(0.0, |rate| rate.median);
        format!("{:.2}", rate / 1e6)
    };
    let table = Table::of(&all)
        .left("queue", |one| one.queue.name().to_owned())
        .right("M items/s", rate)
        .right("ring to this", |one| {
            one.ring_to_this.as_ref().map_or(String::new(), ToString::to_string)
        });
    let text = format!("{}brackets: 95 % intervals\n", table.text());
    report(text, &Results { count: args.count, queues: &all }, None)
}

#[derive(Serialize)]
struct Results<'a> {
    count: u64,
    queues: &'a [HandOver],
}
