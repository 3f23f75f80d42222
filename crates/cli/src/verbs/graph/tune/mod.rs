//! `millstream graph tune`: the best plan for a graph on this machine, found by measuring.

mod check;
mod list;
mod picture;
mod progress;
mod report;
mod search;
mod settings;

use crate::block_types;
use crate::force::ForceArgs;
use crate::numbers::{one_of, seconds, whole};
use crate::output::Report;
use millstream_flow::GraphFile;
use millstream_planner::tune::Objective;
use std::path::PathBuf;

/// Finds the fastest plan for a graph on this machine by measuring, and stores it for `run`.
///
/// The graph runs many times, each time for a fraction of a second, or to its end if that comes
/// sooner. These runs write no files, and use neither network nor radio: other blocks take the
/// places of such blocks, and sources among them send zeros. The new plan is stored only if it is
/// faster than the default plan by more than the measurement noise. Partitions in the graph file's
/// own plan stay unchanged unless --free is given.
#[derive(clap::Args)]
pub struct Args {
    /// The graph file, for example graphs/atsc-rx.toml.
    #[arg(value_name = "GRAPH.toml", required_unless_present = "list")]
    graph: Option<PathBuf>,

    /// Set a parameter of the graph. Repeat the option for more parameters.
    #[arg(long, value_name = "NAME=VALUE")]
    set: Vec<String>,

    /// Length of the search.
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = seconds)]
    duration: f64,

    /// What to maximise.
    #[arg(long, value_name = "GOAL", default_value = "auto", value_parser = one_of(&GOALS))]
    objective: Goal,

    /// Number of pairs of measurements that decide between two plans, at least.
    #[arg(long, value_name = "N", default_value_t = 10)]
    #[arg(value_parser = whole::<u16>(8..=1000))]
    repeat: u16,

    /// Also change the plan that is in the graph file.
    #[arg(long)]
    free: bool,

    /// Also try threads that spin on their CPUs.
    #[arg(long)]
    spin: bool,

    /// Also write the plan to this file; `-` is standard output.
    #[arg(long, value_name = "FILE.toml")]
    out: Option<PathBuf>,

    /// Draw the throughput for each size of the rings to this file.
    #[arg(long, value_name = "FILE.svg")]
    picture: Option<PathBuf>,

    #[command(flatten)]
    force: ForceArgs,

    /// After the search, measure every combination of the important choices. Fail if the best of
    /// them is more than 3 % better than the plan that the search found.
    #[arg(long)]
    check: bool,

    /// Approximate time for --check. With less time its first runs are shorter.
    #[arg(long, value_name = "TIME", default_value = "75s", requires = "check",
          value_parser = seconds)]
    check_duration: f64,

    /// Do not use stored plans: neither start from one nor store the result.
    #[arg(long)]
    no_store: bool,

    /// Seed of the random order of runs.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = whole::<u64>(..))]
    seed: u64,

    /// List the stored plans.
    #[arg(long, conflicts_with_all = ["graph", "forget"])]
    list: bool,

    /// Remove the stored plan of this graph.
    #[arg(long)]
    forget: bool,
}

/// The objective.
type Goal = Option<Objective>;

/// The objectives.
const GOALS: [(&str, &str, Goal); 3] = [
    ("auto", "Like throughput; but like cpu if a radio or a throttle limits the rate", None),
    (
        "throughput",
        "Maximise the number of items per second from the sources",
        Some(Objective::Throughput),
    ),
    (
        "cpu",
        "Maximise the number of items from the sources per second of CPU time",
        Some(Objective::Cpu),
    ),
];

crate::results! { also [report::results, list::results], }

/// Tunes, lists or forgets.
pub fn run(args: Args) -> anyhow::Result<Report> {
    let Some(path) = &args.graph else { return list::run() };
    let file = GraphFile::read(path)?;
    let (registry, _) = block_types::registry();
    if args.forget {
        return list::forget(&file, &registry, &args.set);
    }
    search::run(&args, path, &file, &registry)
}
