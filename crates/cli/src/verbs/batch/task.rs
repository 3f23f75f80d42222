//! `millstream batch task`: one task, in this process.

use super::ManifestArg;
use crate::graph_run::{self, GraphReport, LedgerReport};
use crate::numbers::whole;
use crate::output::{CommandFailed, Report, describe};
use crate::signal::SignalReport;
use anyhow::{Context, ensure};
use millstream_batch::engine::BUSY_STATUS;
use millstream_batch::{Batch, Claim, CpuBudget, Task, TaskClaim, TaskResult};
use millstream_cpu::CpuSet;
use millstream_flow::{Graph, Plan, Preset, Shape, WaitMode};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;

/// Runs one task of a batch. Engines call this; `millstream batch run` calls it for each task.
///
/// The graph gets at most as many threads as the process was given CPUs: by its affinity,
/// SLURM_CPUS_PER_TASK, the control group's cpu.max, or --threads. The exit status is 75 if another
/// process runs the task.
#[derive(clap::Args)]
#[command(after_help = "Example:
  millstream batch task sweep.toml 5d41402abc4b2a76b971")]
pub struct Args {
    #[command(flatten)]
    manifest: ManifestArg,

    /// The task's name, or its beginning. `millstream batch list` shows the names.
    #[arg(value_name = "TASK")]
    task: String,

    /// Most threads of the graph.
    #[arg(long, value_name = "N", value_parser = whole::<usize>(1..))]
    threads: Option<usize>,
}

/// Claims the task, runs it, and keeps its result or the reason of its failure.
pub fn run(args: Args) -> anyhow::Result<Report> {
    let batch = args.manifest.read()?;
    let task = batch.task(&args.task)?;
    let results = batch.results();
    let name = &task.name;
    let told = json!({ "task": name, "folder": results.result_of(name) });
    let claim = match results.claim(name)? {
        Claim::Mine(claim) => claim,
        Claim::Done => return Ok(Report::done(format!("{name} is done\n"), told)),
        Claim::Busy => {
            let failure = Some(format!("another process runs the task {name}: wait for its end"));
            let report = Report { text: String::new(), results: told, failure };
            return Err(CommandFailed { status: BUSY_STATUS, report }.into());
        }
    };
    match run_claimed(&batch, task, &claim, args.threads) {
        Ok(Some(result)) => {
            let done = claim.finish(&result);
            done.inspect_err(|error| drop(results.fail(name, &error.to_string())))?;
            Ok(Report::done(format!("{name} is done\n"), told))
        }
        Ok(None) => anyhow::bail!("the task {name} was interrupted: run the batch again"),
        Err(error) => {
            // The line is told, too; a full disk keeps neither this nor the result.
            let _ = results.fail(name, &describe(&error));
            Err(error)
        }
    }
}

/// Runs the graph; `None` if the user ended it early.
fn run_claimed(
    batch: &Batch,
    task: &Task,
    claim: &TaskClaim,
    threads: Option<usize>,
) -> anyhow::Result<Option<TaskResult>> {
    let seen = batch.seen(task)?;
    // Paths in parameters are relative to the manifest, whoever calls.
    std::env::set_current_dir(batch.folder())
        .with_context(|| format!("cannot enter the folder {}", batch.folder().display()))?;
    let (registry, monitors) = graph_run::registry();
    let graph = batch.graph().build(&registry, &batch.set(task, claim.folder()))?;
    let plan = plan_within(&graph, batch.graph().plan(), threads)?;
    let run = graph_run::attended(graph, &plan, |_, _, _| Ok(()))?;
    if run.interrupted {
        return Ok(None);
    }
    batch.still(task, &seen)?;
    let signals = SignalReport::all(&monitors);
    let ledgers: Vec<_> = run.snapshot.blocks.iter().filter_map(LedgerReport::of).collect();
    let unbalanced = ledgers.iter().find(|ledger| !ledger.balances).map(LedgerReport::defect);
    ensure!(unbalanced.is_none(), unbalanced.unwrap_or_default());
    let graph = batch.graph_path().display().to_string();
    let files = claim.files()?;
    for file in batch.manifest.outputs.values() {
        let part = files.keys().find(|name| **name == format!("{file}.part"));
        ensure!(part.is_none(), "the graph ended before it completed its file {file}");
    }
    Ok(Some(TaskResult {
        task: serde_json::to_value(task)?,
        made_by: BTreeMap::from([
            ("graph".to_owned(), graph),
            ("version".to_owned(), crate::release().to_owned()),
        ]),
        numbers: numbers(&run, &signals)?,
        remark: remark(batch, &files, &signals),
        files,
        results: json!({ "run": run, "ledgers": ledgers, "signals": signals }),
    }))
}

/// Why the result is of little use: the signal, or a file without an item, which is not there.
fn remark(
    batch: &Batch,
    files: &BTreeMap<String, u64>,
    signals: &[SignalReport],
) -> Option<String> {
    let empty = batch.manifest.outputs.values().find(|file| !files.contains_key(*file));
    let empty = || empty.map(|file| format!("the graph wrote nothing to its file {file}"));
    signals.iter().find_map(SignalReport::failure).or_else(empty)
}

/// The plan of the graph file without its CPUs, which several workers would share, and with no more
/// partitions than the process has CPUs.
fn plan_within(graph: &Graph, own: &Plan, threads: Option<usize>) -> anyhow::Result<Plan> {
    let allowed = millstream_cpu::thread::allowed_cpus().ok();
    let variable = |name: &str| std::env::var(name).ok();
    let budget = CpuBudget::read(allowed.as_ref(), variable, Path::new("/"));
    let threads = threads.unwrap_or(budget.cpus).min(budget.cpus);
    let mut plan = own.clone();
    for partition in &mut plan.partitions {
        (partition.cpu, partition.wait) = (None, WaitMode::Park);
    }
    let some: CpuSet = allowed.iter().flat_map(CpuSet::iter).take(threads).collect();
    let complete = |plan: &Plan| {
        millstream_planner::place::complete(plan, &Shape::of(graph), Some(&some))
            .context("the plan does not fit the graph")
    };
    let whole = complete(&plan)?;
    if whole.partitions.len() <= threads {
        return Ok(whole);
    }
    if threads > 1 {
        let free = complete(&Plan { partitions: Vec::new(), ..plan.clone() })?;
        if free.partitions.len() <= threads {
            return Ok(free);
        }
    }
    let partitions = Preset::Single.plan(graph, WaitMode::Park, &plan.buffers).partitions;
    Ok(Plan { partitions, ..plan })
}

/// The numbers of a result: what the run took, items and metrics of its blocks, figures of its
/// receivers.
fn numbers(run: &GraphReport, signals: &[SignalReport]) -> anyhow::Result<BTreeMap<String, f64>> {
    let mut numbers =
        BTreeMap::from([("elapsed_s".to_owned(), run.elapsed_s), ("cpu_s".to_owned(), run.cpu_s)]);
    for block in &run.snapshot.blocks {
        numbers.insert(format!("{}.items_in", block.name), block.items_in as f64);
        numbers.insert(format!("{}.items_out", block.name), block.items_out as f64);
        for name in block.metrics.keys() {
            let value = block.metric(name).filter(|value| value.is_finite());
            numbers.extend(value.map(|value| (format!("{}.{name}", block.name), value)));
        }
    }
    for signal in signals {
        let Value::Object(figures) = serde_json::to_value(signal)? else { continue };
        for (name, value) in figures {
            let value = value.as_f64();
            numbers.extend(value.map(|value| (format!("{}.{name}", signal.receiver), value)));
        }
    }
    Ok(numbers)
}
