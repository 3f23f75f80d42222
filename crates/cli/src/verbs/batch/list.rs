//! `millstream batch list`: the tasks and their states.

use super::ManifestArg;
use crate::output::{Join, Report, shown};
use crate::table::Table;
use millstream_batch::{Batch, Task, TaskState};

/// Lists the tasks of a batch and their states.
///
/// A task is done, running, failed, missing, or stopped by [early_stop] of the manifest.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  millstream batch list sweep.toml
  millstream batch list sweep.toml --json")]
pub struct Args {
    #[command(flatten)]
    manifest: ManifestArg,
}

crate::results! {
    /// The tasks of a batch.
    struct ListedTasks<'a> {
        /// Each task.
        tasks: &'a [ListedTask<'a>],
        /// The folder of results.
        folder: String,
        /// Recordings with the same samples as another one: that one, and this.
        same: &'a [(String, String)],
        /// Folders that could not be read.
        unread: &'a [String],
    }

    /// A task in the list.
    struct ListedTask<'a> {
        /// Its name, recording and parameters.
        #[serde(flatten)]
        task: &'a Task,
        /// done, running, failed, missing or stopped.
        state: &'static str,
        /// Why it failed, or why its result is of little use.
        #[serde(skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    }
}

/// Lists them.
pub fn run(args: Args) -> anyhow::Result<Report> {
    let batch = args.manifest.read()?;
    let results = batch.results();
    let states = batch.states()?;
    let mut listed = Vec::with_capacity(states.len());
    for (task, state) in batch.tasks.iter().zip(&states) {
        let reason = match state {
            TaskState::Failed => results.failure(&task.name)?.map(|failure| failure.reason),
            TaskState::Done => results.result(&task.name)?.and_then(|result| result.remark),
            _ => None,
        };
        listed.push(ListedTask { task, state: state.name(), reason });
    }
    let table = Table::of(&listed)
        .left("task", |one| &one.task.name)
        .left("state", |one| one.state)
        .left("recording", |one| match batch.recording_words(one.task) {
            words if words.is_empty() => "-".to_owned(),
            words => words,
        })
        .left("setting", |one| batch.words(one.task))
        .left("reason", |one| one.reason.as_deref().unwrap_or_default());
    let text = format!("{}{}\n", table.text(), summary(&batch, &states));
    let folder = shown(results.path());
    let (same, unread) = (&batch.same, &batch.unread);
    Ok(Report::of(text, &ListedTasks { tasks: &listed, folder, same, unread }))
}

/// The number of tasks in each state.
fn summary(batch: &Batch, states: &[TaskState]) -> String {
    let all = [
        TaskState::Done,
        TaskState::Running,
        TaskState::Failed,
        TaskState::Missing,
        TaskState::Stopped,
    ];
    let count = |state: &TaskState| states.iter().filter(|one| *one == state).count();
    let counts = all.iter().map(|state| (count(state), state.name()));
    let counts = counts.filter(|(count, _)| *count > 0);
    let counts = counts.map(|(count, name)| format!("{count} {name}")).join(", ");
    format!("{} tasks: {counts}; results in {}", states.len(), batch.results().path().display())
}
