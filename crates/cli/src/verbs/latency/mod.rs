//! `millstream latency`: how late things are on this machine, as distributions. One file a
//! measurement.

mod radio;

use crate::output::Report;
use clap::Subcommand;

/// Measures how late things are on this machine, as distributions.
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

/// Each measurement describes itself where its arguments are.
#[derive(Subcommand)]
enum What {
    Radio(radio::Args),
}

/// Runs one measurement.
pub fn run(args: Args) -> anyhow::Result<Report> {
    match args.what {
        What::Radio(args) => radio::run(args),
    }
}
