//! `millstream batch run`: all tasks that have no result, by an engine.

use super::{ManifestArg, split};
use crate::live::{Live, TimeLeft};
use crate::numbers::whole;
use crate::output::{Report, count, note, shown};
use crate::{block_types, interrupt, program};
use anyhow::{Context, bail};
use millstream_batch::engine::{LocalEngine, News, Progress};
use millstream_batch::slurm::ArrayJob;
use millstream_batch::{Batch, CpuBudget, Task};
use millstream_cpu::CpuSet;
use millstream_cpu::thread::{allowed_cpus, confine_current_thread};
use millstream_host::child::tie;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

/// Runs the tasks of a batch that have no result.
///
/// A result is a folder that appears in one step when it is complete. You can kill this command or
/// a worker at any time and run it again: it does only what is missing. Failed tasks are tried
/// again. Several of these commands may run the same manifest at once, also on several machines
/// that share the folder.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  millstream batch run sweep.toml
  millstream batch run sweep.toml --workers 2
  millstream batch run sweep.toml --engine slurm --dry-run")]
pub struct Args {
    #[command(flatten)]
    manifest: ManifestArg,

    /// What runs the tasks.
    #[arg(long, value_name = "ENGINE", value_enum, default_value_t = EngineArg::Local)]
    engine: EngineArg,

    /// Most tasks at a time. The default of the engine local is a worker for each CPU; the engine
    /// slurm has no limit of its own.
    #[arg(long, value_name = "N", value_parser = whole::<usize>(1..=1024))]
    workers: Option<usize>,

    /// Most threads of a task. The default is the number of CPUs divided by the workers, and one
    /// with the engine slurm.
    #[arg(long, value_name = "N", value_parser = whole::<usize>(1..))]
    threads: Option<usize>,

    /// Only show how many tasks would run, and write the list of tasks into the folder of results;
    /// with the engine slurm also write the script of the job.
    #[arg(long)]
    dry_run: bool,
}

/// The engines.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum EngineArg {
    /// Worker processes on this machine.
    Local,
    /// An array job of Slurm, submitted with sbatch.
    Slurm,
}

crate::results! {
    /// What became of the tasks.
    struct RanBatch {
        /// All tasks.
        tasks: usize,
        /// Those that are done.
        done: usize,
        /// Those that were done before.
        before: usize,
        /// Those that [early_stop] stopped.
        stopped: usize,
        /// Those that failed.
        failed: Vec<FailedTask>,
        /// The folder of results.
        folder: String,
        /// Most tasks at a time.
        workers: usize,
    }

    /// A task that failed.
    struct FailedTask {
        /// Its name.
        task: String,
        /// Why.
        reason: String,
    }

    /// What would run, or was submitted.
    struct PlannedBatch<'a> {
        /// All tasks.
        tasks: usize,
        /// Those without a result.
        open: Vec<&'a str>,
        /// The script of the job.
        #[serde(skip_serializing_if = "Option::is_none")]
        script: Option<&'a Path>,
        /// The job's number.
        #[serde(skip_serializing_if = "Option::is_none")]
        job: Option<String>,
    }
}

impl<'a> PlannedBatch<'a> {
    fn of(batch: &'a Batch, open: &[usize]) -> Self {
        let (tasks, open) = (batch.tasks.len(), named(batch, open));
        Self { tasks, open, script: None, job: None }
    }
}

/// Checks the manifest, and gives its tasks to the engine.
pub fn run(args: Args) -> anyhow::Result<Report> {
    let batch = args.manifest.read()?;
    batch.check(&block_types::registry().0)?;
    for (first, same) in &batch.same {
        note(format_args!("batch   {same} has the same samples as {first}: it is left out"));
    }
    for folder in &batch.unread {
        note(format_args!("batch   a folder is left out, as it cannot be read: {folder}"));
    }
    if batch.manifest.split.is_some() {
        split::check(&batch)?;
    }
    if !batch.outlook()?.open.is_empty() {
        // Without it each worker expands the manifest, and says what is wrong with the folder.
        let _ = batch.write_list();
    }
    if !args.dry_run {
        batch.forget_left_parts()?;
    }
    if matches!(args.engine, EngineArg::Slurm) || args.dry_run {
        let outcomes = batch.outcomes(&batch.results())?;
        let lacks = batch.lacks_number(&outcomes);
        lacks.into_iter().for_each(|text| note(format_args!("batch   {text}")));
    }
    match args.engine {
        EngineArg::Slurm => slurm(&args, &batch, &batch.outlook()?.open),
        EngineArg::Local if args.dry_run => {
            let open = batch.outlook()?.open;
            let text = format!("{} of {} tasks would run\n", open.len(), batch.tasks.len());
            Ok(Report::of(text, &PlannedBatch::of(&batch, &open)))
        }
        EngineArg::Local => local(&args, &batch),
    }
}

/// The names of some tasks.
fn named<'a>(batch: &'a Batch, tasks: &[usize]) -> Vec<&'a str> {
    tasks.iter().map(|at| batch.tasks[*at].name.as_str()).collect()
}

fn local(args: &Args, batch: &Batch) -> anyhow::Result<Report> {
    let allowed = allowed_cpus().context("cannot read the CPUs of this machine")?;
    let variable = |name: &str| std::env::var(name).ok();
    let budget = CpuBudget::read(Some(&allowed), variable, Path::new("/"));
    let workers = args.workers.unwrap_or((budget.cpus / args.threads.unwrap_or(1)).max(1));
    let threads = args.threads.unwrap_or((budget.cpus / workers).max(1));
    let command = |task: &Task, slot: usize| {
        let (manifest, threads) = (batch.path.as_os_str(), threads.to_string());
        let words = ["batch", "task"].map(AsRef::as_ref).into_iter();
        let words = words.chain([manifest, task.name.as_ref()]);
        let words = words.chain(["--threads".as_ref(), threads.as_ref()]);
        let mut command = program::command(words)?;
        tie(&mut command, None);
        // The worker inherits the CPUs of this thread, which only waits.
        confine_current_thread(&share(&allowed, workers, slot))?;
        Ok(command)
    };
    interrupt::install();
    let (mut live, mut left) = (Live::new(), TimeLeft::new(Instant::now()));
    let mut failed = Vec::new();
    let engine = LocalEngine { batch, workers, command };
    let progress = engine.run(
        |news| match news {
            News::Failed(task, reason) => {
                live.end();
                note(failed_line(batch, task, reason));
                let (task, reason) = (task.name.clone(), reason.to_string());
                failed.push(FailedTask { task, reason });
            }
            News::Noted(task, line) => {
                live.end();
                note(format_args!("joined  {}: {line}", task.name));
            }
            News::NoNumber(text) => {
                live.end();
                note(format_args!("batch   {text}"));
            }
            News::Progress(progress) => {
                let now = Instant::now();
                live.show(now, || {
                    let ended = progress.done + progress.failed + progress.stopped;
                    status(progress) + &left.left(now, ended, progress.all)
                });
            }
        },
        interrupt::asked,
    );
    live.end();
    let progress = progress?;
    let folder = batch.results().path().to_owned();
    let text = format!("batch    {}\nresults  {}\n", status(&progress), folder.display());
    let ran = RanBatch {
        tasks: progress.all,
        done: progress.done,
        before: progress.before,
        stopped: progress.stopped,
        failed,
        folder: shown(&folder),
        workers,
    };
    Ok(Report::of(text, &ran).failing(failure(&progress)))
}

/// One line that names the task and says what to do.
fn failed_line(batch: &Batch, task: &Task, reason: &str) -> String {
    let what = [batch.recording_words(task), batch.words(task)];
    let what: Vec<_> = what.into_iter().filter(|words| !words.is_empty()).collect();
    let what = if what.is_empty() { String::new() } else { format!(" ({})", what.join(", ")) };
    format!("failed  {}{what}: {}", task.name, reason.replace('\n', " "))
}

/// The CPUs of a worker: an equal part for each, or all where there are more workers than CPUs.
fn share(allowed: &CpuSet, workers: usize, slot: usize) -> CpuSet {
    let each = allowed.iter().count() / workers;
    match each {
        0 => allowed.clone(),
        _ => allowed.iter().skip(slot * each).take(each).collect(),
    }
}

fn status(progress: &Progress) -> String {
    let Progress { all, done, before, failed, stopped, .. } = progress;
    let mut text = format!("{} of {}", done, count(*all as u64, "task"));
    text += &format!(" done, {} now", done - before);
    if *failed > 0 {
        text += &format!(", {failed} failed");
    }
    if *stopped > 0 {
        text += &format!(", {stopped} stopped early");
    }
    text
}

fn failure(progress: &Progress) -> Option<String> {
    let Progress { all, done, failed, interrupted, .. } = progress;
    match (*interrupted, *failed) {
        (true, _) => Some(format!(
            "interrupted when {done} of {all} tasks were done: run the command again to go on"
        )),
        (false, 0) => None,
        (false, _) => Some(format!(
            "{failed} of {all} tasks failed: `millstream batch list` shows the reasons; run the \
             command again to try these tasks again"
        )),
    }
}

/// Writes the job, and submits it unless this is a dry run.
fn slurm(args: &Args, batch: &Batch, open: &[usize]) -> anyhow::Result<Report> {
    let all = batch.tasks.len();
    if open.is_empty() {
        let text = format!("batch    no task of {all} is left: nothing was submitted\n");
        return Ok(Report::of(text, &PlannedBatch::of(batch, open)));
    }
    let program = std::env::current_exe()?;
    // A folder for each submission; two in one second have different processes.
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH)?.as_secs();
    let name = format!("{now}-{}", std::process::id());
    let cpus = args.threads.unwrap_or(1);
    let job = ArrayJob::write(batch, open, (&name, &program), (args.workers, cpus))?;
    let script = job.script.display();
    let mut text = format!("script   {script}: {} tasks, {} elements\n", open.len(), job.elements);
    let mut planned = PlannedBatch { script: Some(&job.script), ..PlannedBatch::of(batch, open) };
    if !args.dry_run {
        let number = submit(&job)?;
        text += &format!("job      {number}: `millstream batch list` shows its progress\n");
        planned.job = Some(number);
    }
    Ok(Report::of(text, &planned))
}

/// Submits the job; returns its number.
fn submit(job: &ArrayJob) -> anyhow::Result<String> {
    let mut command = Command::new("sbatch");
    command.arg("--parsable").arg(&job.script).stdin(Stdio::null());
    let said = command.output().context(
        "cannot run sbatch: run this on a machine of the cluster (Debian package slurm-client), or \
         use --engine local",
    )?;
    if !said.status.success() {
        let reason = String::from_utf8_lossy(&said.stderr).trim().replace('\n', "; ");
        bail!("sbatch refused {}: {reason}", job.script.display());
    }
    // NUMBER, or NUMBER;CLUSTER.
    let text = String::from_utf8_lossy(&said.stdout);
    Ok(text.trim().split(';').next().unwrap_or_default().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workers_share_the_cpus() {
        let four: CpuSet = "0-3".parse().unwrap();
        let shares = [0, 1].map(|slot| share(&four, 2, slot).to_string());
        assert_eq!(shares, ["0-1", "2-3"]);
        assert_eq!(share(&four, 3, 2).to_string(), "2");
        assert_eq!(share(&four, 5, 4).to_string(), "0-3", "the kernel distributes them");
    }
}
