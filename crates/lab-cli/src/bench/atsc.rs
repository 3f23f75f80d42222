//! `millstream-lab bench atsc`: the television receiver's cost and limits, beside GNU Radio's.

mod cost;
mod emission;
mod limits;

use crate::numbers::within;
use crate::output::Report;
use crate::results::ResultShape;
use clap::Subcommand;
use millstream_lab::atsc::{SETTLE_S, SPARE_S};

/// Measures CPU time and speed of the ATSC receiver, and compares it with GNU Radio's receiver.
///
/// The command makes a recording. Millstream decodes it on one thread, then by the plans for all
/// CPUs. GNU Radio decodes the same recording with a thread for each block. All of them run in
/// several rounds, one after the other. The command also measures the cost of echoes on one thread.
/// Millstream's receiver takes about a minute, and GNU Radio's receiver takes additional time.
/// `table` measures packet errors on weak and impaired signals, and `tx` measures the transmitter.
#[derive(clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Examples:
  millstream-lab bench atsc
  millstream-lab bench atsc --duration 4 --repeat 7 --samples-per-symbol 1.1 --json
  millstream-lab bench atsc table --store limits.jsonl
  millstream-lab bench atsc table --axis echo,doppler --store limits.jsonl --picture limits.png
  millstream-lab bench atsc table --axis noise --duration 20 --no-gnuradio
  millstream-lab bench atsc tx --rate 6.25e6,25e6"
)]
pub struct Args {
    #[command(subcommand)]
    what: Option<What>,

    #[command(flatten)]
    cost: cost::Args,
}

#[derive(Subcommand)]
enum What {
    Table(limits::Args),
    Tx(emission::Args),
}

/// The documents of all measurements.
pub fn results() -> Vec<ResultShape> {
    [cost::results(), limits::results(), emission::results()].concat()
}

/// Runs the measurement.
pub fn run(args: Args) -> anyhow::Result<Report> {
    match args.what {
        Some(What::Table(args)) => limits::run(args),
        Some(What::Tx(args)) => emission::run(args),
        None => cost::run(args.cost),
    }
}

/// Checks that this many seconds of signal leave some to be counted.
fn check_duration(seconds: f64) -> anyhow::Result<()> {
    within(
        "--duration",
        (seconds, " s"),
        SETTLE_S + SPARE_S + 0.1..=3600.0,
        "0.7 to 3600 seconds of signal",
    )?;
    Ok(())
}

/// A setting of GNU Radio's receiver.
fn samples_per_symbol(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|x| (1.05..=4.0).contains(x));
    number.ok_or_else(|| "give a number from 1.05 to 4, as 1.5".to_owned())
}
