//! `millstream latency`: latencies of this machine, as distributions. One file a measurement.

mod class;
mod explain;
mod irq;
mod late;
mod link;
mod port;
mod radio;
mod samples;
mod timer;
mod trips;
mod udp;

use crate::output::Report;
use clap::Subcommand;

/// Measures latencies of this machine as distributions.
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

/// The measurements, documented with their arguments.
#[derive(Subcommand)]
enum What {
    Explain(explain::Args),
    Irq(irq::Args),
    Link(link::Args),
    Port(port::Args),
    Radio(radio::Args),
    Timer(timer::Args),
    Udp(udp::Args),
}

/// Runs one measurement.
pub fn run(args: Args) -> anyhow::Result<Report> {
    match args.what {
        What::Explain(args) => explain::run(&args),
        What::Irq(args) => irq::run(args),
        What::Link(args) => link::run(args),
        What::Port(args) => port::run(&args),
        What::Radio(args) => radio::run(args),
        What::Timer(args) => timer::run(args),
        What::Udp(args) => udp::run(args),
    }
}
