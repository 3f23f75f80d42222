//! `millstream run`: a flowgraph from a file.

use crate::graph_run::{self, LedgerReport};
use crate::live::Live;
use crate::output::Report;
use crate::signal::SignalReport;
use anyhow::Context;
use millstream_flow::{BlockStats, GraphFile, Plan, Snapshot};
use serde_json::json;
use std::fmt::Write;
use std::path::PathBuf;
use std::time::Duration;

/// Runs a flowgraph.
#[derive(clap::Args)]
pub struct Args {
    /// The graph file, for example graphs/atsc-rx.toml.
    #[arg(value_name = "GRAPH.toml")]
    graph: PathBuf,

    /// Sets a parameter of the graph; as often as needed.
    #[arg(long, value_name = "NAME=VALUE")]
    set: Vec<String>,

    /// A plan to obey instead of the graph's own.
    #[arg(long, value_name = "PLAN.toml")]
    plan: Option<PathBuf>,
}

/// Runs until every source has ended or somebody asks.
pub fn run(args: Args, json: bool) -> anyhow::Result<Report> {
    let file = GraphFile::read(&args.graph)?;
    let (registry, monitors) = graph_run::registry();
    let graph = file.build(&registry, &args.set)?;
    let plan = match &args.plan {
        Some(path) => read_plan(path)?,
        None => file.plan().clone(),
    };
    let mut live = Live::new();
    let run = graph_run::run(graph, &plan, &mut live, |elapsed, snapshot| {
        status(elapsed, snapshot, &SignalReport::all(&monitors))
    })?;
    let signals = SignalReport::all(&monitors);
    let ledgers: Vec<_> = run.snapshot.blocks.iter().filter_map(LedgerReport::of).collect();
    if !json {
        for block in &run.snapshot.blocks {
            println!("{}", describe(block));
        }
        for ledger in &ledgers {
            println!("ledger: {}", ledger.summary());
        }
        for signal in &signals {
            println!("{}: {}", signal.receiver, signal.summary());
        }
        println!("{:.2} s, {:.2} s of CPU", run.elapsed_s, run.cpu_s);
    }
    anyhow::ensure!(
        run.interrupted || signals.iter().all(SignalReport::ever_locked),
        "no ATSC signal was received: {}; check the frequency, the rate and the file's format",
        signals.iter().map(|signal| signal.status.state.to_string()).collect::<Vec<_>>().join(", ")
    );
    let ok = ledgers.iter().all(|ledger| ledger.balances);
    Report::new(ok, json!({ "run": run, "ledgers": ledgers, "signals": signals }))
}

fn read_plan(path: &PathBuf) -> anyhow::Result<Plan> {
    let text = std::fs::read_to_string(path)
        .with_context(|| format!("cannot read the plan {}", path.display()))?;
    Plan::from_toml(&text).with_context(|| format!("plan {}", path.display()))
}

/// Items of every source and sink, and what the blocks publish.
fn status(elapsed: Duration, snapshot: &Snapshot, signals: &[SignalReport]) -> String {
    let mut text = format!("{:6.1} s", elapsed.as_secs_f64());
    for block in &snapshot.blocks {
        if block.items_in == 0 && block.items_out > 0 {
            let rate = block.items_out as f64 / elapsed.as_secs_f64().max(1e-3);
            let _ = write!(text, "  {} {:.2} M/s", block.name, rate / 1e6);
        }
    }
    for signal in signals {
        let _ = write!(text, "  {}", signal.summary());
    }
    text
}

fn describe(block: &BlockStats) -> String {
    let per_item = block.busy_ns as f64 / block.items_in.max(block.items_out).max(1) as f64;
    let mut text = format!(
        "{:<14} {:>10} calls {:>12} in {:>12} out {:>8.1} ns/item",
        block.name, block.calls, block.items_in, block.items_out, per_item
    );
    for name in block.metrics.keys() {
        if let Some(value) = block.metric(name).filter(|value| value.is_finite() && *value != 0.0) {
            let _ = write!(text, "  {name} {}", crate::output::short(value));
        }
    }
    text
}
