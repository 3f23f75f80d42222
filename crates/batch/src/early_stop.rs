//! Which tasks remain to run: all without a result, or with `[early_stop]` those of the settings
//! that are still in the running.
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
        let recordings = batch.tasks.len() / batch.settings.max(1);
        match &batch.manifest.early_stop {
            Some(stop) if recordings > 0 => halve(stop, batch.settings, recordings, outcomes),
            _ => Self { open: open(0..outcomes.len(), outcomes), stopped: Vec::new() },
        }
    }
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
    fn no_round_begins_before_the_one_before_has_ended() {
        let outcomes = [Done(Some(9.0)), Open, Open, Open];
        let outlook = halve(&stop(Best::Highest), 2, 2, &outcomes);
        assert_eq!(outlook, Outlook { open: vec![2], stopped: vec![] });
    }
}
