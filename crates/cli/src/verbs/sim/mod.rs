//! `millstream sim`: test equipment. One file a device.

mod fault;
mod generate;
mod radio;

use crate::output::Report;
use clap::Subcommand;

/// Emulates radios, injects faults into them, and makes recordings of television channels.
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

/// The devices, documented with their arguments.
#[derive(Subcommand)]
enum What {
    Radio(radio::Args),
    Fault(fault::Args),
    Generate(generate::Args),
}

impl Args {
    /// Whether it opens links.
    pub fn opens_links(&self) -> bool {
        matches!(self.what, What::Radio(_))
    }
}

/// Uses one device.
pub fn run(args: Args) -> anyhow::Result<Report> {
    match args.what {
        What::Radio(args) => radio::run(args),
        What::Fault(args) => fault::run(args),
        What::Generate(args) => generate::run(args),
    }
}
