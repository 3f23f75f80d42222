//! `millstream atsc`: what there is to know about a television channel.

mod report;

use crate::output::Report;
use clap::Subcommand;

/// Looks into recordings of television channels.
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    Report(report::Args),
}

/// Runs one of them.
pub fn run(args: Args) -> anyhow::Result<Report> {
    match args.what {
        What::Report(args) => report::run(args),
    }
}
