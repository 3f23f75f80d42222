//! Which tasks remain to run: all without a result, or with `[early_stop]` those of the settings
//! that are still in the running. With `[split]` the parts of such a task, and then it itself,
//! which joins them.
//!
//! Successive halving: the first round has the first recordings, each further round twice as many.
//! When all tasks of a round have ended, the best settings continue with the next. The choice
//! depends only on results, so it is the same after an interruption and with every engine.

use crate::{Batch, Best, EarlyStop};
use std::cmp::Ordering;

/// The outcome of one task, for the choice.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum TaskOutcome {
    /// It has no result, and may get one.
    Open,
    /// It failed, and is not run again now.
    Failed,
    /// It is done; the compared number, if the result has it.
    Done(Option<f64>),
}

/// What follows from the outcomes so far.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Outlook {
    /// Tasks that can run now, by their position.
    pub open: Vec<usize>,
    /// Tasks that will not run, as their settings were given up.
    pub stopped: Vec<usize>,
}

impl Outlook {
    /// Concludes from the outcomes of all tasks.
    #[must_use]
    pub fn of(batch: &Batch, outcomes: &[TaskOutcome]) -> Self {
        let recordings = batch.wholes / batch.settings.max(1);
        let wholes = without_parts(batch, outcomes);
        let outlook = match &batch.manifest.early_stop {
            Some(stop) if recordings > 0 => halve(stop, batch.settings, recordings, &wholes),
            _ => Self { open: open(0..batch.wholes, &wholes), stopped: Vec::new() },
        };
        outlook.with_parts(batch, outcomes)
    }

    /// Puts the open parts of a task in its place.
    fn with_parts(self, batch: &Batch, outcomes: &[TaskOutcome]) -> Self {
        let open_parts = |task: usize| open(batch.parts_of(task), outcomes);
        let mut parts_first = Vec::with_capacity(self.open.len());
        for task in self.open {
            let parts = open_parts(task);
            if parts.is_empty() {
                parts_first.push(task);
            }
            parts_first.extend(parts);
        }
        let mut stopped = self.stopped;
        let parts: Vec<_> = stopped.iter().flat_map(|task| open_parts(*task)).collect();
        stopped.extend(parts);
        Self { open: parts_first, stopped }
    }
}

/// The outcomes of the tasks that are no parts. One of which a part failed cannot be joined now:
/// it has failed when its other parts have ended.
fn without_parts(batch: &Batch, outcomes: &[TaskOutcome]) -> Vec<TaskOutcome> {
    let of = |task: usize| {
        let parts = &outcomes[batch.parts_of(task)];
        let has = |outcome| parts.contains(&outcome);
        match outcomes[task] {
            TaskOutcome::Open if has(TaskOutcome::Failed) && !has(TaskOutcome::Open) => {
                TaskOutcome::Failed
            }
            outcome => outcome,
        }
    };
    (0..batch.wholes).map(of).collect()
}

fn open(tasks: impl Iterator<Item = usize>, outcomes: &[TaskOutcome]) -> Vec<usize> {
    tasks.filter(|task| outcomes[*task] == TaskOutcome::Open).collect()
}

fn halve(
    stop: &EarlyStop,
    settings: usize,
    recordings: usize,
    outcomes: &[TaskOutcome],
) -> Outlook {
    let mut alive: Vec<usize> = (0..settings).collect();
    let mut stopped = Vec::new();
    let mut round = stop.first.min(recordings);
    loop {
        let tasks = alive.iter().flat_map(|setting| {
            let first = setting * recordings;
            first..first + round
        });
        let open = open(tasks, outcomes);
        if !open.is_empty() || round == recordings {
            stopped.sort_unstable();
            return Outlook { open, stopped };
        }
        let keep = ((alive.len() as f64 * stop.keep).ceil() as usize).max(1);
        let score = |setting: usize| mean(&outcomes[setting * recordings..][..round]);
        // Stable: of equal settings the first one continues.
        alive.sort_by(|a, b| better(stop.best, score(*a), score(*b)));
        for setting in alive.split_off(keep.min(alive.len())) {
            let rest = setting * recordings + round..(setting + 1) * recordings;
            stopped.extend(rest.filter(|task| outcomes[*task] == TaskOutcome::Open));
        }
        alive.sort_unstable();
        round = round.saturating_mul(2).min(recordings);
    }
}

/// The mean of a setting; `None` if a task has no such number: it is worse than every number.
fn mean(outcomes: &[TaskOutcome]) -> Option<f64> {
    let values: Option<Vec<f64>> = outcomes
        .iter()
        .map(|outcome| match outcome {
            TaskOutcome::Done(value) => value.filter(|value| !value.is_nan()),
            _ => None,
        })
        .collect();
    values.map(|values| values.iter().sum::<f64>() / values.len().max(1) as f64)
}

fn better(best: Best, a: Option<f64>, b: Option<f64>) -> Ordering {
    match (a, b) {
        (Some(a), Some(b)) if best.prefers(a, b) => Ordering::Less,
        (Some(a), Some(b)) if best.prefers(b, a) => Ordering::Greater,
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
        _ => Ordering::Equal,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use TaskOutcome::{Done, Failed, Open};

    fn stop(best: Best) -> EarlyStop {
        EarlyStop { value: "x".to_owned(), best, keep: 0.5, first: 1 }
    }

    /// Runs all open tasks until none is left; returns how many ran, and the last outlook.
    fn run(
        best: Best,
        settings: usize,
        recordings: usize,
        value: impl Fn(usize) -> TaskOutcome,
    ) -> (usize, Outlook) {
        let mut outcomes = vec![Open; settings * recordings];
        for ran in 0.. {
            let outlook = halve(&stop(best), settings, recordings, &outcomes);
            let Some(next) = outlook.open.first() else { return (ran, outlook) };
            outcomes[*next] = value(*next);
        }
        unreachable!()
    }

    #[test]
    fn half_of_the_settings_continue_after_each_round() {
        // Four settings, four recordings: 4 tasks, then 2 settings with 1 more, then 1 with 2 more.
        let (ran, outlook) = run(Best::Highest, 4, 4, |task| Done(Some((task / 4) as f64)));
        assert_eq!((ran, outlook.open.len()), (4 + 2 + 2, 0));
        let kept: Vec<_> = (12..16).filter(|task| outlook.stopped.contains(task)).collect();
        assert!(kept.is_empty(), "the last setting is the best");
        assert_eq!(outlook.stopped.len(), 16 - 8);
        let (_, outlook) = run(Best::Lowest, 4, 4, |task| Done(Some((task / 4) as f64)));
        assert!(outlook.stopped.iter().all(|task| *task >= 4), "the first is the best");
    }

    #[test]
    fn a_setting_that_fails_or_has_no_number_is_the_worst() {
        for bad in [Failed, Done(None), Done(Some(f64::NAN))] {
            let value = |task: usize| if task < 2 { bad } else { Done(Some(-9.0)) };
            let (ran, outlook) = run(Best::Highest, 2, 2, value);
            assert_eq!((ran, outlook.stopped), (3, vec![1]), "{bad:?}");
        }
        let (ran, _) = run(Best::Highest, 2, 2, |_| Failed);
        assert_eq!(ran, 3, "of equal ones the first continues");
    }

    #[test]
    fn parts_come_first_and_then_what_joins_them() {
        let manifest = "[outputs]\nout = \"x\"\n[split]\nparts = 2\n";
        let (_folder, batch) = crate::batch::tests::of_recordings(2, manifest);
        let batch = batch.unwrap();
        // Two tasks, then the parts of each.
        let mut outcomes = vec![Open; 6];
        let open = |outcomes: &[TaskOutcome]| Outlook::of(&batch, outcomes).open;
        assert_eq!(open(&outcomes), [2, 3, 4, 5]);
        outcomes[2] = Done(None);
        outcomes[4] = Failed;
        assert_eq!(open(&outcomes), [3, 5]);
        (outcomes[3], outcomes[5]) = (Done(None), Done(None));
        assert_eq!(open(&outcomes), [0], "the other one lacks a part");
        outcomes[0] = Done(None);
        assert_eq!(open(&outcomes), [0; 0]);
        outcomes = vec![Done(None), Open, Open, Open, Done(None), Done(None)];
        assert_eq!(open(&outcomes), [1], "parts of what is joined are not needed");
    }

    #[test]
    fn no_round_begins_before_the_one_before_has_ended() {
        let outcomes = [Done(Some(9.0)), Open, Open, Open];
        let outlook = halve(&stop(Best::Highest), 2, 2, &outcomes);
        assert_eq!(outlook, Outlook { open: vec![2], stopped: vec![] });
    }
}
