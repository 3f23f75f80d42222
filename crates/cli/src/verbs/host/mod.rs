//! `millstream host`: this machine's settings. One folder a job.

mod doctor;
mod grant;
mod net;
mod shield;

use crate::output::Report;
use clap::Subcommand;

/// Checks and prepares this machine: settings, free CPUs, network interfaces, privileges.
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

/// The jobs, documented with their arguments.
#[derive(Subcommand)]
enum What {
    Doctor(doctor::Args),
    Shield(shield::Args),
    Net(net::Args),
    Grant(grant::Args),
}

impl Args {
    /// Whether it opens links.
    pub fn opens_links(&self) -> bool {
        matches!(&self.what, What::Net(args) if args.opens_links())
    }
}

/// Runs one job. With `json` standard output belongs to the document.
pub fn run(args: Args, json: bool) -> anyhow::Result<Report> {
    match args.what {
        What::Doctor(args) => doctor::run(&args),
        What::Shield(args) => shield::run(&args, json),
        What::Net(args) => net::run(args),
        What::Grant(args) => grant::run(args),
    }
}
