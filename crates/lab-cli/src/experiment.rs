//! The one runner of experiments: cases in interleaved rounds, the live line, the times of records,
//! and what ends a run.

use crate::interrupt;
use crate::live::Steps;
use crate::output::{Report, now};
use millstream_lab::packets::StageError;
use millstream_measure::Measured;
use serde::Serialize;
use std::time::Instant;

/// A measurement of several cases. Rounds are interleaved, so that a disturbance does not hit one
/// case alone.
pub trait Experiment {
    /// What is measured once in each round.
    type Case;

    /// Names a case for the live line.
    fn name(&self, case: &Self::Case) -> String;

    /// Measures a case once, and returns what there is to record; the runner adds the times.
    fn step(&mut self, case: &Self::Case, round: usize) -> Result<Vec<Measured>, Unmeasured>;

    /// Hears why a case cannot be measured here; it is left out of later rounds.
    fn refused(&mut self, _case: &Self::Case, _why: &str) {}
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
#[derive(Debug, Default)]
pub struct Measurements {
    /// The records, in the order of time.
    pub records: Vec<Measured>,
    /// The reasons why cases could not be measured.
    pub refused: Vec<String>,
    /// The error that ended the run; what was measured before is there.
    pub ended: Option<anyhow::Error>,
}

impl Measurements {
    /// Fails when an error ended the run.
    pub fn whole(mut self) -> anyhow::Result<Self> {
        self.ended.take().map_or(Ok(self), Err)
    }

    /// The reason why the run is not whole, in words.
    pub fn failure(&self) -> Option<String> {
        let ended = self.ended.as_ref().map(crate::output::describe);
        ended.or_else(|| self.refused.first().cloned())
    }
}

/// Measures all cases in so many rounds, until the user asks for the end.
pub fn in_rounds<E: Experiment>(
    experiment: &mut E,
    cases: &[E::Case],
    rounds: usize,
) -> Measurements {
    let mut steps = Steps::new(rounds * cases.len());
    let mut all = Measurements::default();
    let mut is_refused = vec![false; cases.len()];
    for round in 0..rounds {
        for (case, is_refused) in cases.iter().zip(&mut is_refused) {
            if *is_refused {
                steps.skip();
                continue;
            }
            if let Err(asked) = interrupt::check("every case was measured") {
                all.ended = Some(asked);
                return all;
            }
            steps.next(|| experiment.name(case));
            let (started, begun) = (now(), Instant::now());
            match experiment.step(case, round) {
                Ok(mut records) => {
                    let seconds = begun.elapsed().as_secs_f64();
                    for record in &mut records {
                        record.started.clone_from(&started);
                        record.seconds = seconds;
                    }
                    all.records.append(&mut records);
                }
                Err(Unmeasured::Refused(why)) => {
                    experiment.refused(case, &why);
                    all.refused.push(why);
                    *is_refused = true;
                }
                Err(Unmeasured::Ended(error)) => {
                    all.ended = Some(error);
                    return all;
                }
            }
        }
    }
    all
}

/// The report of an experiment. The document of `--json` is the struct of its results.
pub fn report(
    text: String,
    results: &impl Serialize,
    failure: Option<String>,
) -> anyhow::Result<Report> {
    Ok(Report { text, results: serde_json::to_value(results)?, failure })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Cases are the rounds in which they are refused or end the run.
    struct Drawn(Vec<(usize, &'static str)>);

    impl Experiment for Drawn {
        type Case = (&'static str, usize, bool);

        fn name(&self, (name, ..): &Self::Case) -> String {
            (*name).to_owned()
        }

        fn step(
            &mut self,
            (name, last, ends): &Self::Case,
            round: usize,
        ) -> Result<Vec<Measured>, Unmeasured> {
            self.0.push((round, name));
            match (round < *last, ends) {
                (true, _) => Ok(vec![Measured::default()]),
                (false, true) => Err(StageError::Ended.into()),
                (false, false) => Err(StageError::Refused(format!("{name} is not here")).into()),
            }
        }
    }

    #[test]
    fn cases_take_turns_and_one_that_is_refused_is_left_out() {
        let mut drawn = Drawn(Vec::new());
        let all = in_rounds(&mut drawn, &[("a", 9, false), ("b", 1, false)], 3);
        assert_eq!(drawn.0, [(0, "a"), (0, "b"), (1, "a"), (1, "b"), (2, "a")]);
        assert_eq!((all.records.len(), &all.refused[..]), (4, &["b is not here".to_owned()][..]));
        assert!(all.records.iter().all(|record| !record.started.is_empty()));
        assert_eq!(all.failure().as_deref(), Some("b is not here"));
    }

    #[test]
    fn an_error_ends_the_run_and_what_was_measured_remains() {
        let mut drawn = Drawn(Vec::new());
        let all = in_rounds(&mut drawn, &[("a", 9, false), ("b", 1, true)], 3);
        assert_eq!((all.records.len(), drawn.0.len()), (3, 4));
        assert!(all.failure().unwrap().starts_with("interrupted before"), "{all:?}");
    }
}
