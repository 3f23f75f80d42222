//! `millstream-lab bench ring`: items between two threads over the ring and over locked queues.

use crate::experiment::{Experiment, Unmeasured, in_rounds};
use crate::numbers::whole;
use crate::output::Report;
use crate::table::Table;
use millstream_lab::hand_over::{self, HandOver, QueueKind};
use millstream_stats::median;

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

crate::results! {
    /// The rates of queues between two threads.
    struct RingResults {
        /// Items of each measurement.
        count: u64,
        /// The rates of each queue, and of the ring beside them.
        queues: Vec<HandOver>,
    }
}

/// Measures; prints a table.
pub fn run(args: Args) -> anyhow::Result<Report> {
    let mut queues = Queues { count: args.count };
    let all = in_rounds(&mut queues, &QueueKind::ALL, args.repeat as usize).whole()?;
    let queues = HandOver::of(&all.cases);
    let rate = |one: &HandOver| format!("{:.2}", median(&one.items_per_s) / 1e6);
    let table = Table::of(&queues)
        .left("queue", |one| one.queue.name().to_owned())
        .right("M items/s", rate)
        .right("ring to this", |one| {
            one.ring_to_this.as_ref().map_or(String::new(), ToString::to_string)
        });
    let text = format!("{}brackets: 95 % intervals\n", table.text());
    Ok(Report::of(text, &RingResults { count: args.count, queues }))
}

/// The measurement of queues.
struct Queues {
    count: u64,
}

impl Experiment for Queues {
    type Case = QueueKind;
    type Outcome = f64;

    fn name(&self, queue: &QueueKind) -> String {
        queue.name().to_owned()
    }

    fn step(&mut self, queue: &QueueKind, _: usize) -> Result<f64, Unmeasured> {
        Ok(hand_over::rate(*queue, self.count))
    }
}
