//! Runs a graph to its end with a live line, and turns its counters into results.

use crate::dashboard::Dashboard;
use crate::graph_report::{GraphReport, LedgerReport};
use crate::interrupt;
use crate::live::Live;
use crate::output::{Join, describe, note, short};
use crate::signal::SignalReport;
use anyhow::{Context, anyhow};
use millstream_flow::{BlockStats, Graph, Plan, RunError, RunningGraph, Shape, Snapshot};
use millstream_publish::Publications;
use std::path::Path;
use std::time::{Duration, Instant};

/// Time limit of an aborted run's end; blocks that hang do not return.
const GIVE_UP_AFTER: Duration = Duration::from_secs(1);

/// Runs `graph` until it ends or the user asks; `status` makes the live line. The graph is the
/// verb's own: errors omit the names of its blocks, which the user has not chosen.
pub fn run(
    graph: Graph,
    plan: &Plan,
    (live, dashboard): (&mut Live, &mut Option<Dashboard>),
    signals: impl Fn() -> Vec<SignalReport>,
    status: impl Fn(Duration, &Snapshot) -> String,
) -> anyhow::Result<GraphReport> {
    let run = attended(graph, plan, |now, elapsed, running| {
        if let Some(dashboard) = dashboard {
            dashboard.attend(now, elapsed, running, &signals);
        }
        live.show(now, || status(elapsed, &running.snapshot()));
        Ok(())
    });
    live.end();
    if let (Some(dashboard), Ok(run)) = (dashboard, &run) {
        dashboard.end(run, signals());
    }
    plain(run)
}

/// Prints what people should know of the sinks: which outlets are away, and which are back.
pub fn tell_notes(publications: &Publications, live: &mut Live) {
    for line in publications.take_notes() {
        live.end();
        note(format_args!("millstream: {line}"));
    }
}

/// Leaves the block's name out of an error: the user of a verb does not know its graph.
pub fn plain(run: anyhow::Result<GraphReport>) -> anyhow::Result<GraphReport> {
    run.map_err(|error| match error.downcast::<RunError>() {
        Ok(RunError::Block { source, .. }) => anyhow!(source),
        Ok(other) => other.into(),
        Err(error) => error,
    })
}

/// Prints the ledgers of the radios of a run that has failed.
fn tell_ledgers(last: &Snapshot) {
    for block in &last.blocks {
        if let Some(ledger) = LedgerReport::of(block).filter(|ledger| ledger.expected > 0) {
            note(format_args!("until the failure: {}", ledger.summary()));
        }
    }
}

/// Runs `graph` until it ends or the user asks, or until `attend` returns an error; it is called
/// fifty times a second with the time and the elapsed time.
pub fn attended(
    graph: Graph,
    plan: &Plan,
    mut attend: impl FnMut(Instant, Duration, &mut RunningGraph) -> anyhow::Result<()>,
) -> anyhow::Result<GraphReport> {
    interrupt::install();
    let started = Instant::now();
    let allowed = millstream_cpu::thread::allowed_cpus().ok();
    let plan = millstream_planner::place::complete(plan, &Shape::of(&graph), allowed.as_ref())
        .context("the plan does not fit the graph")?;
    let mut running = graph.start(&plan).context("cannot start the graph")?;
    let stopper = running.stopper();
    while !running.is_finished() {
        std::thread::sleep(Duration::from_millis(20));
        if interrupt::asked() {
            stopper.stop();
        }
        let now = Instant::now();
        if let Err(error) = attend(now, now - started, &mut running) {
            running.abandon(GIVE_UP_AFTER);
            return Err(error);
        }
    }
    let (profile, plan) = (running.profile(), running.plan().clone());
    let last = running.snapshot();
    let snapshot = running.wait().inspect_err(|_| tell_ledgers(&last))?;
    let elapsed_s = started.elapsed().as_secs_f64();
    let cpu_s = millstream_cpu::usage::process_cpu_time().as_secs_f64();
    Ok(GraphReport { interrupted: interrupt::asked(), elapsed_s, cpu_s, plan, profile, snapshot })
}

/// The metrics of a block that are not zero: names and values.
pub fn metrics(block: &BlockStats) -> Vec<String> {
    let value = |name: &str| block.metric(name).filter(|value| value.is_finite() && *value != 0.0);
    let metric = |name: &String| Some(format!("{name} {}", short(value(name)?)));
    block.metrics.keys().filter_map(metric).collect()
}

/// Partitions with their blocks in one line.
pub fn describe_plan(plan: &Plan) -> String {
    plan.partitions.iter().map(|partition| partition.blocks.join(", ")).join(" | ")
}

/// Adds to the error of a failed run the path of the partial file that a file sink wrote for
/// `path`.
pub fn with_part(error: anyhow::Error, path: &Path) -> anyhow::Error {
    let part = millstream_output::part_of(path);
    let kept = part.metadata().is_ok_and(|data| data.is_file() && data.len() > 0);
    let what = describe(&error);
    if kept {
        anyhow!("{what}; the file {} contains the data up to that point", part.display())
    } else {
        error
    }
}
