//! `millstream host net`: interfaces, their configuration, and the threads that drive them.

mod check;
mod host;
mod import;
mod links;
mod schema;
mod show;
mod threads;

use crate::output::Report;

/// Shows network interfaces, and configures the links on them.
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

/// The parts, documented with their arguments.
#[derive(clap::Subcommand)]
enum What {
    Check(check::Args),
    Host(host::Args),
    Import(import::Args),
    Links(links::Args),
    Schema(schema::Args),
    Show(show::Args),
    Threads(threads::Args),
}

impl Args {
    /// Whether it opens links, which the configuration is about.
    pub fn opens_links(&self) -> bool {
        matches!(self.what, What::Host(_))
    }
}

/// Runs one part.
pub fn run(args: Args) -> anyhow::Result<Report> {
    match args.what {
        What::Check(args) => check::run(&args),
        What::Host(args) => host::run(&args),
        What::Import(args) => import::run(&args),
        What::Links(args) => links::run(&args),
        What::Schema(args) => schema::run(&args),
        What::Show(args) => show::run(&args),
        What::Threads(args) => threads::run(&args),
    }
}
