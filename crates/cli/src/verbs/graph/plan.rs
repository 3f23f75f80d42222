//! `millstream graph plan`: the placement of a graph's blocks on a machine, and its reasons.

use super::placed::PlaceArgs;
use crate::force::ForceArgs;
use crate::output::Report;
use crate::stdout;
use millstream_flow::{Plan, Profile};
use millstream_planner::place::Prediction;
use std::path::PathBuf;

/// Finds a good plan for a graph from the measured costs of its blocks, and explains it.
///
/// Without --profile the command measures: it runs the graph on one thread for a short time. The
/// graph reads its files. Blocks that would write files, use the network or open a radio are
/// replaced: sources send zeros, sinks write nothing, and the cost of such a block counts as almost
/// 0. With --keep the plan keeps the partitions of the graph file.
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    place: PlaceArgs,

    /// Write the plan to this file for `millstream run GRAPH.toml --plan PLAN.toml`; `-` is
    /// standard output.
    #[arg(long, value_name = "FILE.toml")]
    out: Option<PathBuf>,

    #[command(flatten)]
    force: ForceArgs,
}

crate::results! {
    /// A plan and its reasons.
    struct FoundPlan<'a> {
        /// The machine for which it is.
        machine: &'a str,
        /// The costs of the blocks.
        profile: &'a Profile,
        /// The plan.
        plan: &'a Plan,
        /// What is expected of it.
        prediction: &'a Prediction,
    }
}

/// Places the blocks; prints the result.
pub fn run(args: Args) -> anyhow::Result<Report> {
    let out = args.out.as_deref().map(stdout::for_data).transpose()?;
    out.as_deref().map_or(Ok(()), |path| args.force.check(path))?;
    let found = args.place.place()?;
    if let Some(path) = &out {
        args.force.write(path, found.placed.plan.to_toml())?;
    }
    let remarks: String = found.remarks.iter().map(|line| format!("{line}\n")).collect();
    let text = format!("{}\n{}{remarks}", found.title, found.placed.words());
    let results = FoundPlan {
        machine: &found.machine,
        profile: &found.profile,
        plan: &found.placed.plan,
        prediction: &found.placed.prediction,
    };
    Ok(Report::of(text, &results))
}
