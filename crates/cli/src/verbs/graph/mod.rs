//! `millstream graph`: flowgraphs before they run. One file a job.

mod blocks;
mod draw;
pub mod placed;
mod plan;
mod tune;

use crate::output::Report;
use clap::Subcommand;

/// Plans, tunes and draws flowgraphs, and lists the types of blocks.
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

/// The jobs, documented with their arguments.
#[derive(Subcommand)]
enum What {
    Plan(plan::Args),
    Tune(tune::Args),
    Blocks(blocks::Args),
    Draw(draw::Args),
}

impl Args {
    /// Whether it runs a graph, which may open links.
    pub fn opens_links(&self) -> bool {
        !matches!(self.what, What::Blocks(_))
    }
}

/// Does one job.
pub fn run(args: Args) -> anyhow::Result<Report> {
    match args.what {
        What::Plan(args) => plan::run(&args),
        What::Tune(args) => tune::run(args),
        What::Blocks(args) => blocks::run(args),
        What::Draw(args) => draw::run(&args),
    }
}
