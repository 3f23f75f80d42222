//! `millstream batch task`: one task, in this process.

use super::part::{PartDocument, SplitGraph};
use super::ran::{self, TaskDocument, result_of, run_graph};
use super::{ManifestArg, join};
use crate::block_types;
use crate::numbers::whole;
use crate::output::{CommandFailed, Report, count, describe, document, note, shown};
use anyhow::Context;
use millstream_batch::engine::BUSY_STATUS;
use millstream_batch::{Batch, Claim, Task, TaskClaim, TaskPart, TaskResult};
use std::collections::BTreeMap;

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

crate::results! {
    also [ran::results, join::results],

    /// A task.
    struct DoneTask<'a> {
        /// Its name.
        task: &'a str,
        /// The folder of its result.
        folder: String,
    }
}

/// Claims the task, runs it, and keeps its result or the reason of its failure. The process that
/// ends the last part of a recording joins them, and so does one that finds all parts done.
pub fn run(args: Args) -> anyhow::Result<Report> {
    let batch = Batch::for_task(&args.manifest.manifest, crate::release(), &args.task)?;
    let at = position(&batch, batch.task(&args.task)?)?;
    let whole = batch.whole_of(at);
    if is_there(&batch, whole.unwrap_or(at)) {
        // What a process left that was killed before it had removed them.
        batch.forget_parts(whole.unwrap_or(at));
        return Ok(is_done(&batch, at));
    }
    let report = run_one(&batch, at, args.threads)?;
    let Some(whole) = whole.filter(|whole| is_to_join(&batch, *whole)) else { return Ok(report) };
    // Its failure is kept and told as its own, and this part is done.
    if let Err(error) = run_one(&batch, whole, args.threads) {
        note(format_args!("join    {}: {}", batch.tasks[whole].name, describe(&error)));
    }
    Ok(is_done(&batch, at))
}

fn position(batch: &Batch, task: &Task) -> anyhow::Result<usize> {
    let at = batch.tasks.iter().position(|one| one.name == task.name);
    at.with_context(|| format!("the batch has no task {}", task.name))
}

/// Whether the task's own result is there.
fn is_there(batch: &Batch, at: usize) -> bool {
    batch.results().result_of(&batch.tasks[at].name).is_dir()
}

/// The task, and the folder with its result: for a part that was removed, that of the whole.
fn told(batch: &Batch, at: usize) -> DoneTask<'_> {
    let whole = batch.whole_of(at).filter(|whole| !is_there(batch, at) && is_there(batch, *whole));
    let folder = batch.results().result_of(&batch.tasks[whole.unwrap_or(at)].name);
    DoneTask { task: &batch.tasks[at].name, folder: shown(&folder) }
}

fn is_done(batch: &Batch, at: usize) -> Report {
    Report::of(format!("{} is done\n", batch.tasks[at].name), &told(batch, at))
}

/// Whether all parts of a task are done and it is not.
fn is_to_join(batch: &Batch, whole: usize) -> bool {
    let is_done = |at: usize| is_there(batch, at);
    !is_done(whole) && batch.parts_of(whole).all(is_done)
}

fn run_one(batch: &Batch, at: usize, threads: Option<usize>) -> anyhow::Result<Report> {
    let results = batch.results();
    let task = &batch.tasks[at];
    let name = &task.name;
    let claim = match results.claim(name)? {
        // Another process may have joined the parts since, and removed them.
        Claim::Mine(_) if batch.is_done(&results, at) => return Ok(is_done(batch, at)),
        Claim::Mine(claim) => claim,
        Claim::Done => return Ok(is_done(batch, at)),
        Claim::Busy => {
            let failure = Some(format!("another process runs the task {name}: wait for its end"));
            let report = Report::of(String::new(), &told(batch, at)).failing(failure);
            return Err(CommandFailed { status: BUSY_STATUS, report }.into());
        }
    };
    // Paths in parameters are relative to the manifest, whoever calls.
    let entered = std::env::set_current_dir(batch.folder())
        .with_context(|| format!("cannot enter the folder {}", batch.folder().display()));
    let ran = entered.and_then(|()| match (task.part, &batch.manifest.split) {
        (Some(part), _) => run_part(batch, task, part, &claim, threads),
        (None, Some(_)) => join::run(batch, task, &claim, threads),
        (None, None) => run_claimed(batch, task, &claim, threads),
    });
    match ran {
        Ok(Some(result)) => {
            let done = claim.finish(&result);
            done.inspect_err(|error| drop(results.fail(name, &error.to_string())))?;
            batch.forget_parts(at);
            Ok(is_done(batch, at))
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
    let place = (task, claim.folder());
    let Some(ran) = run_graph(batch, batch.graph(), place, threads, |_| Ok(()))? else {
        return Ok(None);
    };
    batch.still(task, &seen)?;
    ran.result(batch, task, claim, None).map(Some)
}

/// Runs the graph over a part of the recording; `None` if the user ended it early.
fn run_part(
    batch: &Batch,
    task: &Task,
    part: TaskPart,
    claim: &TaskClaim,
    threads: Option<usize>,
) -> anyhow::Result<Option<TaskResult>> {
    let seen = batch.seen(task)?;
    let split = SplitGraph::of(batch, task, &block_types::registry().0)?;
    let Some(range) = split.cuts.part(part.number - 1, 1) else {
        let part = PartDocument { range: None, marks: Vec::new(), gauges: Vec::new() };
        let results = TaskDocument::of_split(document(&part));
        let result = result_of(batch, task, claim, BTreeMap::new(), &results)?;
        let parts = count(split.cuts.parts as u64, "part");
        let remark = Some(format!("the recording is long enough for {parts} only: this is empty"));
        return Ok(Some(TaskResult { remark, ..result }));
    };
    let ran = split.run(batch, task, claim.folder(), range, threads)?;
    let Some((ran, marks)) = ran else { return Ok(None) };
    batch.still(task, &seen)?;
    let marks = marks.iter().map(|mark| (mark.byte, mark.sample)).collect();
    let part = PartDocument { range: Some(range), marks, gauges: ran.numbers()?.1 };
    ran.result(batch, task, claim, Some(document(&part))).map(Some)
}
