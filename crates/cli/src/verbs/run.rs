//! `millstream run`: a flowgraph from a file.

use crate::graph_run::{self, LedgerReport, Run};
use crate::live::Live;
use crate::output::{Report, note};
use crate::signal::SignalReport;
use crate::stored;
use anyhow::Context;
use millstream_flow::{BlockStats, GraphFile, Plan, Snapshot};
use serde_json::json;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Runs a flowgraph.
///
/// It ends when its sources do, or in order on SIGINT. A file that it writes is called NAME.part
/// until it is whole; after a failure that is what remains of it.
#[derive(clap::Args)]
pub struct Args {
    /// The graph file, for example graphs/atsc-rx.toml.
    #[arg(value_name = "GRAPH.toml")]
    graph: PathBuf,

    /// Sets a parameter of the graph; as often as needed.
    #[arg(long, value_name = "NAME=VALUE")]
    set: Vec<String>,

    /// A plan to obey instead of the stored one of `millstream tune`, or the graph's own.
    #[arg(long, value_name = "PLAN.toml")]
    plan: Option<PathBuf>,

    /// Leave a stored plan alone.
    #[arg(long)]
    no_stored_plan: bool,
}

/// Runs until every source has ended or somebody asks.
pub fn run(args: Args) -> anyhow::Result<Report> {
    let file = GraphFile::read(&args.graph)?;
    let (registry, monitors) = graph_run::registry();
    // Before the blocks, which may open radios and files.
    let (plan, tuned) = match &args.plan {
        Some(path) => (read_plan(path)?, None),
        None if args.no_stored_plan => (file.plan().clone(), None),
        None => stored::plan_for(&file, &registry, &args.set),
    };
    let graph = file.build(&registry, &args.set)?;
    let mut live = Live::new();
    let run = graph_run::run(graph, &plan, &mut live, |elapsed, snapshot| {
        status(elapsed, snapshot, &SignalReport::all(&monitors))
    })?;
    let without = file.rehearsed(&registry);
    let advice = tuned.and_then(|record| stored::advice(&record, &run.snapshot, &without));
    if let Some(advice) = &advice {
        note(format_args!("millstream: {advice}"));
    }
    let signals = SignalReport::all(&monitors);
    let ledgers: Vec<_> = run.snapshot.blocks.iter().filter_map(LedgerReport::of).collect();
    Ok(Report {
        text: summary(&run, &ledgers, &signals),
        failure: failure(&run, &ledgers, &signals),
        results: json!({
            "run": run, "ledgers": ledgers, "signals": signals, "advice": advice
        }),
    })
}

fn summary(run: &Run, ledgers: &[LedgerReport], signals: &[SignalReport]) -> String {
    let mut text = String::new();
    for block in &run.snapshot.blocks {
        let _ = writeln!(text, "{}", describe(block));
    }
    for ledger in ledgers {
        let _ = writeln!(text, "ledger: {}", ledger.summary());
    }
    for signal in signals {
        let _ = writeln!(text, "{}: {}", signal.receiver, signal.summary());
    }
    let _ = writeln!(text, "{:.2} s, {:.2} s of CPU", run.elapsed_s, run.cpu_s);
    text
}

fn failure(run: &Run, ledgers: &[LedgerReport], signals: &[SignalReport]) -> Option<String> {
    if let Some(ledger) = ledgers.iter().find(|ledger| !ledger.balances) {
        return Some(ledger.defect());
    }
    // Who ends it early knows that there may be nothing yet.
    signals.iter().filter(|_| !run.interrupted).find_map(SignalReport::failure)
}

fn read_plan(path: &Path) -> anyhow::Result<Plan> {
    let text = millstream_flow::file::read_text(path)
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
        let _ = write!(text, "  {}", signal.brief());
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
