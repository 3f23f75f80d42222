//! `millstream graph tune`: the best plan for a graph on this machine, found by measuring.

mod check;
mod list;
mod picture;
mod progress;
mod report;
mod search;

use crate::graph_run;
use crate::numbers::seconds;
use crate::output::Report;
use millstream_flow::GraphFile;
use millstream_planner::tune::Objective;
use std::path::PathBuf;

/// Finds the best plan for a graph on this machine, and stores it for `run`.
///
/// The graph runs many times, a fraction of a second each: whole if it ends soon by itself, else
/// for a while. Sinks leave no files behind then. A plan is kept only if it is better than the
/// default beyond noise, and the graph's own plan stays as it is.
#[derive(clap::Args)]
pub struct Args {
    /// The graph file, for example graphs/atsc-rx.toml.
    #[arg(value_name = "GRAPH.toml", required_unless_present = "list")]
    graph: Option<PathBuf>,

    /// Sets a parameter of the graph; as often as needed.
    #[arg(long, value_name = "NAME=VALUE")]
    set: Vec<String>,

    /// Time to use.
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = seconds)]
    duration: f64,

    /// The objective.
    #[arg(long, value_name = "GOAL", value_enum, default_value_t = Goal::Auto)]
    objective: Goal,

    /// Pairs of measurements that decide between two plans, at least.
    #[arg(long, value_name = "N", default_value_t = 10)]
    #[arg(value_parser = clap::value_parser!(u16).range(8..=1000))]
    repeat: u16,

    /// Change the graph's own plan, too.
    #[arg(long)]
    free: bool,

    /// Let threads spin on their pinned CPUs where that is faster.
    #[arg(long)]
    spin: bool,

    /// Write the plan here, too; `-` is standard output.
    #[arg(long, value_name = "FILE.toml")]
    out: Option<PathBuf>,

    /// Draw throughput by size of rings.
    #[arg(long, value_name = "FILE.svg")]
    picture: Option<PathBuf>,

    /// Measure every combination of coarse choices afterwards, and fail if the best of them is more
    /// than 3 % better than the found plan.
    #[arg(long)]
    check: bool,

    /// Time for that, about: with less time, the first runs are shorter.
    #[arg(long, value_name = "TIME", default_value = "75s", requires = "check",
          value_parser = seconds)]
    check_duration: f64,

    /// Do not use the store, neither to start from nor for the result.
    #[arg(long)]
    no_store: bool,

    /// Seed of the order of runs.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,

    /// List stored plans.
    #[arg(long, conflicts_with_all = ["graph", "forget"])]
    list: bool,

    /// Forget the stored plan of this graph.
    #[arg(long)]
    forget: bool,
}

/// The objective.
#[derive(Clone, Copy, Debug, Eq, PartialEq, clap::ValueEnum)]
enum Goal {
    /// Throughput, or CPU where the graph waits for the outside world.
    Auto,
    /// Items of the sources per second.
    Throughput,
    /// Items of the sources per second of CPU time.
    Cpu,
}

impl Goal {
    fn objective(self) -> Option<Objective> {
        match self {
            Self::Auto => None,
            Self::Throughput => Some(Objective::Throughput),
            Self::Cpu => Some(Objective::Cpu),
        }
    }
}

/// Tunes, lists or forgets.
pub fn run(args: Args) -> anyhow::Result<Report> {
    let Some(path) = &args.graph else { return list::run() };
    let file = GraphFile::read(path)?;
    let (registry, _) = graph_run::registry();
    if args.forget {
        return list::forget(&file, &registry, &args.set);
    }
    search::run(&args, path, &file, &registry)
}
