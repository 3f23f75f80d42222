//! `millstream lab resume`: a run that is not done, taken up.

use super::place::StoreArgs;
use super::planned::Planned;
use super::{What, kernels, run as plain};
use crate::output::{Report, note};
use crate::{Cli, Verb};
use anyhow::{Context, bail};
use clap::Parser;
use millstream_lab::design::Plan;

/// Goes on with a run of `lab run` or `lab kernels` that was interrupted, killed, or in which
/// starts gave nothing.
///
/// The store knows the plan and the command line as they were. Starts come in the order that the
/// plan's seed gives, as they would have; only what is missing is measured.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  sudo millstream lab resume
  sudo millstream lab resume 'timer 2026-11-20T03'")]
pub struct Args {
    /// The run; its name may be cut short as long as it is clear. `last` is the one that was begun
    /// last.
    #[arg(value_name = "RUN", default_value = "last")]
    run: String,

    #[command(flatten)]
    store: StoreArgs,
}

/// Succeeds when nothing of the plan is missing any more.
pub fn run(args: &Args) -> anyhow::Result<Report> {
    let mut store = args.store.open()?;
    let begun = store.begun(&args.run)?;
    // Paths in its command line start there.
    let folder = || format!("the run was begun in {}", begun.folder.display());
    std::env::set_current_dir(&begun.folder).with_context(folder)?;
    let plan = Plan::parse(&begun.plan)?;
    let Ok(Cli { verb: Verb::Lab(lab), .. }) = Cli::try_parse_from(&begun.command) else {
        bail!("this millstream does not understand how the run was begun: {:?}", begun.command);
    };
    let known = store.take_up(&begun.run)?;
    note(format_args!("resume  {} records are known", known.records.len()));
    let planned = Planned { plan, name: begun.run, known };
    match lab.what {
        What::Run(args) => plain::carry_on(&args, planned, Some(store)),
        What::Kernels(args) => kernels::carry_on(&args, planned, store),
        _ => bail!("{:?} began no run", begun.command),
    }
}
