//! The one runner of experiments: cases in interleaved rounds, the live line, the times of records,
//! the rule that ends a run, and what it has found by then.

use crate::interrupt;
use crate::live::{Steps, during_with};
use crate::output::{describe, now};
use millstream_lab::CaseRuns;
use millstream_lab::packets::StageError;
use millstream_measure::Measured;
use std::time::{Duration, Instant};

/// A measurement of several cases. Rounds are interleaved, so that a disturbance does not hit one
/// case alone.
pub trait Experiment {
    /// What is measured once in each round.
    type Case;

    /// What one step finds.
    type Outcome;

    /// Names a case for the live line.
    fn name(&self, case: &Self::Case) -> String;

    /// Measures a case once.
    fn step(&mut self, case: &Self::Case, round: usize) -> Result<Self::Outcome, Unmeasured>;

    /// Returns what there is to record of a step; the runner adds the time of its begin, and its
    /// length where that is not known better.
    fn records(&self, _case: &Self::Case, _outcome: &Self::Outcome) -> Vec<Measured> {
        Vec::new()
    }

    /// Returns how long a step takes, where that is known: the live line counts it down.
    fn expected(&self, _case: &Self::Case) -> Option<Duration> {
        None
    }

    /// Returns what tells meanwhile, in words, what such a step has found so far.
    fn so_far(&self) -> Box<dyn Fn() -> String + Send> {
        Box::new(String::new)
    }

    /// Whether the cases, in their order, need no further step.
    fn is_done(&self, _so_far: &[CaseRuns<Self::Outcome>]) -> bool {
        false
    }
}

/// The reason why a step has no result.
#[derive(Debug)]
pub enum Unmeasured {
    /// The case cannot be measured here; others can.
    Refused(String),
    /// The run ends.
    Ended(anyhow::Error),
}

impl<E: Into<anyhow::Error>> From<E> for Unmeasured {
    fn from(error: E) -> Self {
        match error.into().downcast() {
            Ok(StageError::Refused(why)) => Self::Refused(why),
            Ok(ended) => Self::Ended(ended.into()),
            Err(error) => Self::Ended(error),
        }
    }
}

/// What a run has measured.
#[derive(Debug)]
pub struct Measurements<O> {
    /// What the rounds gave for each case, in the order of the cases.
    pub cases: Vec<CaseRuns<O>>,
    /// The records, in the order of time.
    pub records: Vec<Measured>,
    /// The error that ended the run; what was measured before is there.
    pub ended: Option<anyhow::Error>,
}

impl<O> Measurements<O> {
    /// Fails when an error ended the run.
    pub fn whole(mut self) -> anyhow::Result<Self> {
        self.ended.take().map_or(Ok(self), Err)
    }

    /// The outcomes, case by case.
    pub fn outcomes(self) -> impl Iterator<Item = O> {
        self.cases.into_iter().flat_map(|case| case.runs).map(|(_, outcome)| outcome)
    }

    /// The reasons why cases could not be measured.
    pub fn refused(&self) -> impl Iterator<Item = &str> {
        self.cases.iter().filter_map(|case| case.refused.as_deref())
    }

    /// The error that ended the run, in words.
    pub fn error(&self) -> Option<String> {
        self.ended.as_ref().map(describe)
    }

    /// The same, unless the user asked for the end: a shorter run is whole, too.
    pub fn broken(&self) -> Option<String> {
        self.error().filter(|_| !interrupt::asked())
    }

    /// The reason why the run is not whole, in words.
    pub fn failure(&self) -> Option<String> {
        self.error().or_else(|| self.refused().next().map(str::to_owned))
    }
}

/// Measures all cases in so many rounds, or until the user asks for the end.
pub fn in_rounds<E: Experiment>(
    experiment: &mut E,
    cases: &[E::Case],
    rounds: usize,
) -> Measurements<E::Outcome> {
    run(experiment, cases, Some(rounds))
}

/// Measures all cases until the experiment is done, or the user asks for the end.
pub fn until_done<E: Experiment>(
    experiment: &mut E,
    cases: &[E::Case],
) -> Measurements<E::Outcome> {
    run(experiment, cases, None)
}

fn run<E: Experiment>(
    experiment: &mut E,
    cases: &[E::Case],
    rounds: Option<usize>,
) -> Measurements<E::Outcome> {
    let mut steps = Steps::new(rounds.map(|rounds| rounds * cases.len()));
    let found = cases.iter().map(|_| CaseRuns::default()).collect();
    let mut all = Measurements { cases: found, records: Vec::new(), ended: None };
    for round in 0..rounds.unwrap_or(usize::MAX) {
        if all.cases.iter().all(|case| case.refused.is_some()) {
            break;
        }
        for at in 0..cases.len() {
            // In both orders, so that a drift of the machine favours no case.
            let at = if round % 2 == 0 { at } else { cases.len() - 1 - at };
            if all.cases[at].refused.is_some() {
                steps.skip();
                continue;
            }
            if experiment.is_done(&all.cases) {
                return all;
            }
            let until = match all.cases.iter().any(|case| !case.runs.is_empty()) {
                true => "every case was measured",
                false => "the measurement had a result",
            };
            if let Err(asked) = interrupt::check(until) {
                all.ended = Some(asked);
                return all;
            }
            let case = &cases[at];
            steps.next(|| experiment.name(case));
            let (started, begun) = (now(), Instant::now());
            match step(experiment, case, round) {
                Ok(outcome) => {
                    let seconds = begun.elapsed().as_secs_f64();
                    for mut record in experiment.records(case, &outcome) {
                        record.started.clone_from(&started);
                        if record.seconds == 0.0 {
                            record.seconds = seconds;
                        }
                        all.records.push(record);
                    }
                    all.cases[at].runs.push((round, outcome));
                }
                Err(Unmeasured::Refused(why)) => all.cases[at].refused = Some(why),
                Err(Unmeasured::Ended(error)) => {
                    all.ended = Some(error);
                    return all;
                }
            }
        }
    }
    all
}

fn step<E: Experiment>(
    experiment: &mut E,
    case: &E::Case,
    round: usize,
) -> Result<E::Outcome, Unmeasured> {
    match experiment.expected(case) {
        None => experiment.step(case, round),
        expected => {
            let (name, so_far) = (experiment.name(case), experiment.so_far());
            during_with(&name, expected, so_far, || experiment.step(case, round))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Cases are the rounds in which they are refused or end the run.
    struct Drawn(Vec<(usize, &'static str)>);

    impl Experiment for Drawn {
        type Case = (&'static str, usize, bool);
        type Outcome = usize;

        fn name(&self, (name, ..): &Self::Case) -> String {
            (*name).to_owned()
        }

        fn step(
            &mut self,
            (name, last, ends): &Self::Case,
            round: usize,
        ) -> Result<usize, Unmeasured> {
            self.0.push((round, name));
            match (round < *last, ends) {
                (true, _) => Ok(round),
                (false, true) => Err(StageError::Ended.into()),
                (false, false) => Err(StageError::Refused(format!("{name} is not here")).into()),
            }
        }

        fn records(&self, _: &Self::Case, _: &usize) -> Vec<Measured> {
            vec![Measured::default()]
        }

        fn is_done(&self, so_far: &[CaseRuns<usize>]) -> bool {
            so_far[0].runs.len() > 4
        }
    }

    #[test]
    fn cases_take_turns_in_both_orders_and_one_that_is_refused_is_left_out() {
        let mut drawn = Drawn(Vec::new());
        let all = in_rounds(&mut drawn, &[("a", 9, false), ("b", 1, false)], 3);
        assert_eq!(drawn.0, [(0, "a"), (0, "b"), (1, "b"), (1, "a"), (2, "a")]);
        assert_eq!(all.cases[0].runs, [(0, 0), (1, 1), (2, 2)]);
        assert_eq!(all.cases[1].refused.as_deref(), Some("b is not here"));
        assert_eq!(all.records.len(), 4);
        assert!(all.records.iter().all(|record| !record.started.is_empty()));
        assert_eq!(all.failure().as_deref(), Some("b is not here"));
    }

    #[test]
    fn an_error_ends_the_run_and_what_was_measured_remains() {
        let mut drawn = Drawn(Vec::new());
        let all = in_rounds(&mut drawn, &[("a", 9, false), ("b", 1, true)], 3);
        assert_eq!((all.records.len(), drawn.0.len()), (2, 3));
        assert!(all.failure().unwrap().starts_with("interrupted before"), "{all:?}");
    }

    #[test]
    fn a_run_without_a_number_of_rounds_ends_by_its_rule_or_when_no_case_is_left() {
        let all = until_done(&mut Drawn(Vec::new()), &[("a", 9, false)]);
        assert_eq!((all.cases[0].runs.len(), all.failure()), (5, None));
        let all = until_done(&mut Drawn(Vec::new()), &[("a", 2, false)]);
        assert_eq!((all.cases[0].runs.len(), all.refused().count()), (2, 1));
    }
}
