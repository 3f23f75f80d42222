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
        let outlook = Outlook::of(self, &self.with_failures(&outcomes, &running, &failed));
        let stopped: BTreeSet<usize> = outlook.stopped.into_iter().collect();
        let state = |(at, task): (usize, &Task)| match outcomes[at] {
            TaskOutcome::Done(_) => TaskState::Done,
            _ if running.contains(&task.name) => TaskState::Running,
            _ if stopped.contains(&at) => TaskState::Stopped,
            _ if failed.contains(&task.name) => TaskState::Failed,
            _ => TaskState::Missing,
        };
        Ok(self.tasks.iter().enumerate().map(state).collect())
    }

    /// Concludes which tasks an engine can run now that runs one round at a time. With
    /// `[early_stop]` those that failed come last: they are the worst of their round until then.
    ///
    /// # Errors
    /// As [`states`](Self::states).
    pub fn outlook(&self) -> Result<Outlook, BatchError> {
        let results = self.results();
        let (running, failed) = (results.running()?, results.all_failed()?);
        let outcomes = self.outcomes(&results)?;
        if self.manifest.early_stop.is_some() {
            let outlook = Outlook::of(self, &self.with_failures(&outcomes, &running, &failed));
            if !outlook.open.is_empty() {
                return Ok(outlook);
            }
        }
        Ok(Outlook::of(self, &outcomes))
    }

    /// Lets open tasks have failed whose last run did, unless they run again.
    fn with_failures(
        &self,
        outcomes: &[TaskOutcome],
        running: &BTreeSet<String>,
        failed: &BTreeSet<String>,
    ) -> Vec<TaskOutcome> {
        let of = |(task, outcome): (&Task, &TaskOutcome)| match outcome {
            TaskOutcome::Open if failed.contains(&task.name) && !running.contains(&task.name) => {
                TaskOutcome::Failed
            }
            outcome => *outcome,
        };
        self.tasks.iter().zip(outcomes).map(of).collect()
    }

    /// Returns the outcome of every task: done or open.
    ///
    /// # Errors
    /// As [`states`](Self::states).
    pub fn outcomes(&self, results: &ResultFolder) -> Result<Vec<TaskOutcome>, BatchError> {
        let done = results.done()?;
        let outcome = |(at, task): (usize, &Task)| {
            let whole = self.whole_of(at).map(|whole| &self.tasks[whole].name);
            match done.contains(&task.name) {
                true => self.outcome(results, task),
                // What it would contribute to is done.
                false if whole.is_some_and(|whole| done.contains(whole)) => {
                    Ok(TaskOutcome::Done(None))
                }
                false => Ok(TaskOutcome::Open),
            }
        };
        self.tasks.iter().enumerate().map(outcome).collect()
    }

    /// Whether a task has a result, or is a part of one that has.
    #[must_use]
    pub fn is_done(&self, results: &ResultFolder, at: usize) -> bool {
        let is_there = |at: usize| results.result_of(&self.tasks[at].name).is_dir();
        is_there(at) || self.whole_of(at).is_some_and(is_there)
    }

    /// Removes the results of the parts of a task that is done: they would take as much space again
    /// as the joined result. A process that is killed meanwhile leaves no half of one.
    pub fn forget_parts(&self, whole: usize) {
        let results = self.results();
        if !results.result_of(&self.tasks[whole].name).is_dir() {
            return;
        }
        for part in &self.tasks[self.parts_of(whole)] {
            // Nobody reads what remains of one; the next run tries again.
            let _ = results.remove(&part.name);
        }
    }

    /// Removes the results of all parts whose whole task is done: what processes left that were
    /// killed.
    ///
    /// # Errors
    /// The folder of results cannot be read.
    pub fn forget_left_parts(&self) -> Result<(), BatchError> {
        let there = self.results().done()?;
        let is_there = |part: usize| there.contains(&self.tasks[part].name);
        let has_parts = |at: &usize| self.parts_of(*at).any(is_there);
        (0..self.wholes).filter(has_parts).for_each(|at| self.forget_parts(at));
        Ok(())
    }

    /// Says so if results are there and none has the number that `[early_stop]` compares.
    #[must_use]
    pub fn lacks_number(&self, outcomes: &[TaskOutcome]) -> Option<String> {
        let stop = self.manifest.early_stop.as_ref()?;
        let mut done = outcomes[..self.wholes].iter().filter_map(|outcome| match outcome {
            TaskOutcome::Done(value) => Some(*value),
            _ => None,
        });
        let lacks = done.next()?.is_none() && done.all(|value| value.is_none());
        lacks.then(|| {
            format!(
                "no result so far has the number `{}` that [early_stop] compares: the settings \
                 count as equal, and the first ones continue; `millstream batch table` shows the \
                 numbers that there are",
                stop.value
            )
        })
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::tests::{finish, of_recordings};
    use TaskState::{Done, Failed, Missing, Stopped};

    #[test]
    fn a_failed_task_does_not_stop_the_rounds_of_an_early_stop() {
        let manifest = "[sweep]\na = [1, 2]\n[early_stop]\nvalue = \"x\"\n";
        let (_folder, batch) = of_recordings(2, manifest);
        let batch = batch.unwrap();
        assert_eq!(batch.outlook().unwrap().open, [0, 2], "the first round");
        batch.results().fail(&batch.tasks[0].name, "no memory").unwrap();
        finish(&batch, 2, 1.0);
        assert_eq!(batch.outlook().unwrap(), Outlook { open: vec![3], stopped: vec![1] });
        assert_eq!(batch.states().unwrap(), [Failed, Stopped, Done, Missing]);
        finish(&batch, 3, 1.0);
        assert_eq!(batch.outlook().unwrap().open, [0], "at last it is tried again");
        finish(&batch, 0, 2.0);
        assert_eq!(batch.outlook().unwrap().open, [1], "it is the best");
        assert_eq!(batch.states().unwrap(), [Done, Missing, Done, Done]);
    }

    #[test]
    fn a_number_that_no_result_has_is_told() {
        let manifest = "[sweep]\na = [1, 2]\n[early_stop]\nvalue = \"y\"\n";
        let (_folder, batch) = of_recordings(2, manifest);
        let batch = batch.unwrap();
        let told = || batch.lacks_number(&batch.outcomes(&batch.results()).unwrap());
        assert_eq!(told(), None, "there is no result");
        finish(&batch, 0, 1.0);
        assert!(told().unwrap().contains("has the number `y` that [early_stop] compares"));
        let (_folder, batch) = of_recordings(2, &manifest.replace("\"y\"", "\"x\""));
        let batch = batch.unwrap();
        finish(&batch, 0, 1.0);
        assert_eq!(batch.lacks_number(&batch.outcomes(&batch.results()).unwrap()), None);
    }

    #[test]
    fn the_parts_of_a_joined_result_are_removed_and_are_done() {
        let (_folder, batch) = of_recordings(1, "[outputs]\nout = \"x\"\n[split]\nparts = 2\n");
        let batch = batch.unwrap();
        let results = batch.results();
        finish(&batch, 1, 1.0);
        finish(&batch, 2, 1.0);
        batch.forget_parts(0);
        assert!(results.result_of(&batch.tasks[2].name).is_dir(), "nothing has joined them");
        finish(&batch, 0, 1.0);
        // What a process left that was killed while it removed one.
        let left = results.path().join("work").join(format!("{}.old", batch.tasks[1].name));
        std::fs::create_dir_all(&left).unwrap();
        std::fs::write(left.join("x"), "half").unwrap();
        batch.forget_left_parts().unwrap();
        assert!(!left.exists(), "it is removed with the part");
        let there: Vec<_> = results.done().unwrap().into_iter().collect();
        assert_eq!(there, [batch.tasks[0].name.clone()]);
        assert!((0..3).all(|at| batch.is_done(&results, at)));
        assert_eq!(batch.states().unwrap(), [Done; 3]);
        assert!(batch.outlook().unwrap().open.is_empty());
    }

    #[test]
    fn without_early_stop_failed_tasks_are_among_the_open_ones() {
        let (_folder, batch) = of_recordings(2, "");
        let batch = batch.unwrap();
        batch.results().fail(&batch.tasks[0].name, "no memory").unwrap();
        assert_eq!(batch.outlook().unwrap().open, [0, 1]);
        assert_eq!(batch.states().unwrap(), [Failed, Missing]);
    }
}
