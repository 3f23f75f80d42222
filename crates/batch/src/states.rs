//! The state of each task of a batch.

use crate::{Batch, BatchError, Outlook, ResultFolder, Task, TaskOutcome};
use std::collections::BTreeSet;

/// What became of a task.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum TaskState {
    /// Its result is there.
    Done,
    /// A process runs it.
    Running,
    /// It failed the last time.
    Failed,
    /// It has no result.
    Missing,
    /// Its setting was given up by `[early_stop]`.
    Stopped,
}

impl TaskState {
    /// Returns its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Running => "running",
            Self::Failed => "failed",
            Self::Missing => "missing",
            Self::Stopped => "stopped",
        }
    }
}

impl Batch {
    /// Reads the state of every task.
    ///
    /// # Errors
    /// The folder of results, or a result that `[early_stop]` compares, cannot be read.
    pub fn states(&self) -> Result<Vec<TaskState>, BatchError> {
        let results = self.results();
        let (running, failed) = (results.running()?, results.all_failed()?);
        // Last: a task that ends meanwhile is done.
        let outcomes = self.outcomes(&results)?;
        let stopped: BTreeSet<usize> = Outlook::of(self, &outcomes).stopped.into_iter().collect();
        let state = |(at, task): (usize, &Task)| match outcomes[at] {
            TaskOutcome::Done(_) => TaskState::Done,
            _ if running.contains(&task.name) => TaskState::Running,
            _ if stopped.contains(&at) => TaskState::Stopped,
            _ if failed.contains(&task.name) => TaskState::Failed,
            _ => TaskState::Missing,
        };
        Ok(self.tasks.iter().enumerate().map(state).collect())
    }

    /// Returns the outcome of every task: done or open.
    ///
    /// # Errors
    /// As [`states`](Self::states).
    pub fn outcomes(&self, results: &ResultFolder) -> Result<Vec<TaskOutcome>, BatchError> {
        let done = results.done()?;
        let outcome = |task: &Task| match done.contains(&task.name) {
            true => self.outcome(results, task),
            false => Ok(TaskOutcome::Open),
        };
        self.tasks.iter().map(outcome).collect()
    }

    /// Returns the outcome of a task that is done.
    pub(crate) fn outcome(
        &self,
        results: &ResultFolder,
        task: &Task,
    ) -> Result<TaskOutcome, BatchError> {
        let Some(stop) = &self.manifest.early_stop else { return Ok(TaskOutcome::Done(None)) };
        let result = results.result(&task.name)?;
        let value = result.and_then(|result| result.numbers.get(&stop.value).copied());
        Ok(TaskOutcome::Done(value))
    }
}
