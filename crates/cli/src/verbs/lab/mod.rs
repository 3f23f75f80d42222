//! `millstream lab`: runs of measurement plans, stored, compared and reported. One file a job.

pub mod adc;
mod card;
mod compare;
mod guest;
mod import;
mod kernels;
mod list;
mod load;
mod place;
mod planned;
mod report;
mod resume;
mod run;
mod sets;
mod worker;

use crate::output::Report;
use clap::Subcommand;

/// Carries out measurement plans; stores, compares and reports the results.
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

/// The jobs, documented with their arguments.
#[derive(Subcommand)]
enum What {
    Run(run::Args),
    Resume(resume::Args),
    List(list::Args),
    Compare(compare::Args),
    Report(report::Args),
    Import(import::Args),
    Kernels(Box<kernels::Args>),
    Load(load::Args),
    Guest(Box<guest::Args>),
    Card(card::Args),
    #[command(hide = true)]
    Adc(adc::Args),
    #[command(hide = true)]
    Worker(worker::Args),
}

/// Runs one job.
pub fn run(args: Args) -> anyhow::Result<Report> {
    match args.what {
        What::Run(args) => run::run(args),
        What::Resume(args) => resume::run(&args),
        What::List(args) => list::run(&args),
        What::Compare(args) => compare::run(&args),
        What::Report(args) => report::run(&args),
        What::Import(args) => import::run(&args),
        What::Kernels(args) => kernels::run(*args),
        What::Load(args) => load::run(&args),
        What::Guest(args) => guest::run(*args),
        What::Card(args) => card::run(&args),
        What::Adc(args) => adc::run(args),
        What::Worker(args) => worker::run(args),
    }
}
