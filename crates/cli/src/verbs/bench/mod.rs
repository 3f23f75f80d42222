//! `millstream bench`: the rates that this machine sustains. One file a measurement.

mod atsc;
mod buffer;
mod convert;
mod faults;
mod graph;
mod packets;
mod peer;
mod rate;
mod way;
mod worker;

pub use packets::{places, refusals};

use crate::output::Report;
use clap::Subcommand;

/// Measures rates and costs on this machine.
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

/// The measurements, documented with their arguments.
#[derive(Subcommand)]
enum What {
    Atsc(atsc::Args),
    Buffer(buffer::Args),
    Convert(convert::Args),
    Faults(faults::Args),
    Graph(graph::Args),
    Packets(packets::Args),
    Rate(rate::Args),
    #[command(hide = true)]
    Worker(worker::Args),
}

/// Runs one measurement.
pub fn run(args: Args) -> anyhow::Result<Report> {
    match args.what {
        What::Atsc(args) => atsc::run(args),
        What::Buffer(args) => buffer::run(args),
        What::Convert(args) => convert::run(args),
        What::Faults(args) => faults::run(args),
        What::Graph(args) => graph::run(args),
        What::Packets(args) => packets::run(args),
        What::Rate(args) => rate::run(args),
        What::Worker(args) => worker::run(args),
    }
}
