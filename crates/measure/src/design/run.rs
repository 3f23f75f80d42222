//! Carries out a measurement plan.
//!
//! A start that fails is tried again once; a second failure is recorded in the run, and the others
//! continue. An interrupted run can be resumed: the seed gives the same order again, and known
//! results are not measured again.

use serde::Serialize;

use super::bench::{MeasuringMachine, StartFailure, StartResult, Unit};
use super::look::next_look;
use super::plan::{MeasurementPlan, MeasurementPlanError};
pub use super::progress::CellProgress;
use super::progress::RunProgress;
use crate::Failure;
use crate::record::Record;

/// The tries of a start that fails.
const TRIES: u32 = 2;

/// The failed starts of a cell without any record after which the run omits the cell.
const HOPELESS: u32 = 2;

/// The reason why a run ended early.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MeasurementRunError {
    /// The plan is wrong.
    #[error(transparent)]
    Plan(#[from] MeasurementPlanError),
    /// No start is possible.
    #[error("{0} (the results up to now are stored)")]
    Place(String),
    /// Records are lost.
    #[error("cannot store the results: {0}")]
    Keep(String),
}

/// The result of a run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RunResult {
    /// Its name.
    pub run: String,
    /// Starts with samples, including those known before.
    pub starts: u32,
    /// Starts that were known when the run was resumed.
    pub known: u32,
    /// Starts that were tried again.
    pub again: u32,
    /// Rounds.
    pub rounds: u32,
    /// The reason of its end.
    pub why: &'static str,
    /// The starts and parts without a result.
    pub failures: Vec<Failure>,
    /// The figures of each cell and series.
    pub lines: Vec<CellProgress>,
}

/// Carries out a plan as the run of this name, with the results known so far.
///
/// # Errors
/// [`MeasurementRunError`]; the results stored until then can be passed as `known`.
pub fn run(
    plan: &MeasurementPlan,
    name: &str,
    known: &StartResult,
    bench: &mut dyn MeasuringMachine,
) -> Result<RunResult, MeasurementRunError> {
    const ASKED: &str = "it was interrupted";
    let cells = plan.cells()?;
    let mut book = RunProgress::default();
    let mut failures = known.failures.clone();
    let (mut starts, mut skipped, mut again, mut rounds) = (0, 0, 0, 0);
    // The failed starts of each cell without any record.
    let mut hopes: Vec<Option<u32>> = vec![Some(0); cells.len()];
    let foreseen = cells.len() * plan.restarts as usize;
    // The rounds before the last known one did not end the run then, and do not end it now.
    let begun = known.records.iter().map(|record| record.restart + 1).max().unwrap_or(0);
    let mut look = plan.restarts;
    let why = 'run: loop {
        for index in plan.order(rounds, cells.len()) {
            let cell = &cells[index];
            let is_known = |record: &&Record| record.restart == rounds && bench.is_of(record, cell);
            let there: Vec<Record> = known.records.iter().filter(is_known).cloned().collect();
            if !there.is_empty() {
                book.add(plan, &there);
                (starts, skipped, hopes[index]) = (starts + 1, skipped + 1, None);
                continue;
            }
            if hopes[index] == Some(HOPELESS) {
                continue;
            }
            if bench.ended() {
                break 'run ASKED;
            }
            let number = (starts as usize, foreseen.max(starts as usize + 1));
            let unit = Unit { run: name, cell, restart: rounds, number };
            let (given, failed) = take(&unit, bench)?;
            let Some(given) = given else { break 'run ASKED };
            bench.keep(&unit, &given).map_err(MeasurementRunError::Keep)?;
            failures.extend_from_slice(&given.failures);
            if given.records.is_empty() {
                hopes[index] = hopes[index].map(|failed| failed + 1);
            } else {
                book.add(plan, &given.records);
                (starts, hopes[index]) = (starts + 1, None);
                again += failed;
            }
        }
        rounds += 1;
        if hopes.iter().all(|hope| *hope == Some(HOPELESS)) {
            break "no start gave a result";
        }
        if rounds == look {
            let widest = book.widest();
            if rounds >= begun && widest.is_some_and(|half| half <= plan.precision) {
                break "every figure is known well enough";
            }
            look = next_look(rounds, widest, plan.precision);
        }
        if rounds >= plan.restarts_max {
            break "that was the last round";
        }
    };
    let (run, lines) = (name.to_owned(), book.lines());
    Ok(RunResult { run, starts, known: skipped, again, rounds, why, failures, lines })
}

/// Takes the results of a start, with their place, and the number of failed tries before it. A
/// start during which an end was requested has no result: the program got the same request, and its
/// shortened samples would count as whole ones.
fn take(
    unit: &Unit<'_>,
    bench: &mut dyn MeasuringMachine,
) -> Result<(Option<StartResult>, u32), MeasurementRunError> {
    let Unit { run, cell, restart, .. } = *unit;
    let mut failed = 0;
    loop {
        let outcome = bench.start(unit);
        if bench.ended() {
            return Ok((None, failed));
        }
        match outcome {
            Ok(mut given) => {
                for record in &mut given.records {
                    run.clone_into(&mut record.run);
                    record.restart = restart;
                    bench.place(record, cell);
                }
                for failure in &mut given.failures {
                    run.clone_into(&mut failure.run);
                    (failure.restart, failure.partial) = (restart, true);
                }
                return Ok((Some(given), failed));
            }
            Err(StartFailure::Place(reason)) => return Err(MeasurementRunError::Place(reason)),
            Err(StartFailure::Start(reason)) => {
                failed += 1;
                if failed == TRIES {
                    let failure = Failure {
                        run: run.to_owned(),
                        variant: cell.variant.clone(),
                        name: cell.name.clone(),
                        load: cell.load.name.clone(),
                        restart,
                        tries: TRIES,
                        reason,
                        partial: false,
                    };
                    let given = StartResult { records: Vec::new(), failures: vec![failure] };
                    return Ok((Some(given), failed));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::design::plan::tests::PLAN;
    use crate::record::tests::record;

    /// A machine on which the figures of a cell vary from start to start by `spread`.
    struct Fake {
        spread: u64,
        fail: u32,
        /// This cell always fails.
        bad: Option<(&'static str, &'static str)>,
        kept: Vec<Record>,
        lost: Vec<Failure>,
        started: usize,
        /// An end is requested during this start.
        end_in: usize,
    }

    impl MeasuringMachine for Fake {
        fn start(&mut self, unit: &Unit<'_>) -> Result<StartResult, StartFailure> {
            let cell = unit.cell;
            if self.fail > 0 || self.bad == Some((&cell.variant, &cell.name)) {
                self.fail = self.fail.saturating_sub(1);
                return Err("no luck".to_owned().into());
            }
            self.started += 1;
            let base = 10_000 + u64::from(unit.restart % 2) * self.spread;
            let sample = |sample| {
                let mut record = record("unplaced", &[base + u64::from(sample)]);
                record.sample = sample;
                record
            };
            Ok(StartResult { records: (0..2).map(sample).collect(), failures: Vec::new() })
        }

        fn keep(&mut self, _: &Unit<'_>, known: &StartResult) -> Result<(), String> {
            self.kept.extend_from_slice(&known.records);
            self.lost.extend_from_slice(&known.failures);
            Ok(())
        }

        fn ended(&self) -> bool {
            self.started >= self.end_in
        }
    }

    fn fake(spread: u64) -> Fake {
        let (kept, lost) = (Vec::new(), Vec::new());
        Fake { spread, fail: 0, bad: None, kept, lost, started: 0, end_in: usize::MAX }
    }

    fn run(
        plan: &MeasurementPlan,
        name: &str,
        bench: &mut dyn MeasuringMachine,
    ) -> Result<RunResult, MeasurementRunError> {
        super::run(plan, name, &StartResult::default(), bench)
    }

    #[test]
    fn a_steady_machine_ends_early_and_an_unsteady_one_at_the_last_round() {
        let plan = MeasurementPlan {
            restarts_max: 9,
            precision: 0.05,
            ..MeasurementPlan::parse(PLAN).unwrap()
        };
        let mut steady = fake(0);
        let outcome = run(&plan, "r", &mut steady).unwrap();
        // The plan asks for four, which are too few for an interval.
        assert_eq!((outcome.rounds, outcome.starts), (6, 48));
        assert_eq!(outcome.why, "every figure is known well enough");
        assert_eq!(outcome.lines.len(), 8);
        let mut unsteady = fake(20_000);
        let outcome = run(&plan, "r", &mut unsteady).unwrap();
        assert_eq!((outcome.rounds, outcome.why), (9, "that was the last round"));
        let line = &outcome.lines[0];
        assert!(
            line.spread.between.unwrap() > 0.3 && line.spread.within.unwrap() < 0.01,
            "{line:?}"
        );
        // Every record has its place.
        let record = &unsteady.kept[0];
        assert_eq!((&*record.run, record.measured.observed.histogram.count()), ("r", 1));
        let mut places: Vec<_> = unsteady
            .kept
            .iter()
            .map(|r| (r.variant.clone(), r.name.clone(), r.load.clone(), r.restart, r.sample))
            .collect();
        places.sort();
        places.dedup();
        assert_eq!(places.len(), 9 * 8 * 2);
    }

    #[test]
    fn a_start_that_fails_is_tried_again_once() {
        let plan = MeasurementPlan::parse(PLAN).unwrap();
        let mut once = Fake { fail: 1, ..fake(0) };
        assert_eq!(run(&plan, "r", &mut once).unwrap().again, 1);
        let mut twice = Fake { fail: 2, ..fake(0) };
        let outcome = run(&plan, "r", &mut twice).unwrap();
        assert_eq!((outcome.starts, outcome.again, outcome.failures.len()), (31, 0, 1));
        let first = &plan.cells().unwrap()[plan.order(0, 8)[0]];
        let expected = Failure {
            run: "r".to_owned(),
            variant: first.variant.clone(),
            name: first.name.clone(),
            load: first.load.name.clone(),
            restart: 0,
            tries: 2,
            reason: "no luck".to_owned(),
            partial: false,
        };
        assert_eq!((&outcome.failures, &twice.lost), (&vec![expected.clone()], &vec![expected]));
    }

    #[test]
    fn what_always_fails_is_given_up_and_the_others_go_on() {
        let plan = MeasurementPlan::parse(PLAN).unwrap();
        let mut bench = Fake { bad: Some(("b", "udp")), ..fake(0) };
        let outcome = run(&plan, "r", &mut bench).unwrap();
        // Two loads, two rounds of each.
        assert_eq!((outcome.starts, outcome.failures.len()), (24, 4));
        assert!(outcome.failures.iter().all(|one| one.variant == "b" && one.name == "udp"));
        let mut nothing = Fake { fail: u32::MAX, ..fake(0) };
        let outcome = run(&plan, "r", &mut nothing).unwrap();
        assert_eq!((outcome.starts, outcome.rounds), (0, 2));
        assert_eq!((outcome.why, outcome.failures.len()), ("no start gave a result", 16));
    }

    #[test]
    fn a_run_that_is_taken_up_measures_only_what_is_missing_in_the_same_order() {
        let plan = MeasurementPlan::parse(PLAN).unwrap();
        let mut whole = fake(1000);
        let expected = run(&plan, "r", &mut whole).unwrap();
        // A start in the middle failed, and the run was ended later.
        let mut first = Fake { end_in: 14, ..fake(1000) };
        run(&plan, "r", &mut first).unwrap();
        let mut records = first.kept.clone();
        let lost: Vec<Record> = records.drain(6..8).collect();
        let known = StartResult { records, failures: Vec::new() };
        let mut second = fake(1000);
        let outcome = super::run(&plan, "r", &known, &mut second).unwrap();
        assert_eq!((outcome.known, outcome.starts), (12, 32));
        assert_eq!(second.kept.len(), 64 - known.records.len());
        let places = |records: &[Record]| -> Vec<_> {
            let place = |r: &Record| (r.title(), r.variant.clone(), r.restart, r.sample);
            records.iter().map(place).collect()
        };
        assert_eq!(places(&second.kept[..2]), places(&lost));
        assert_eq!(places(&second.kept[2..]), places(&whole.kept[26..]), "the seed's order");
        assert_eq!(outcome.lines, expected.lines);
        let mut none = fake(1000);
        let known = StartResult { records: whole.kept, failures: Vec::new() };
        let outcome = super::run(&plan, "r", &known, &mut none).unwrap();
        assert_eq!((outcome.known, none.started), (32, 0));
    }

    #[test]
    fn a_run_that_is_taken_up_does_not_end_before_the_last_round_that_is_known() {
        let plan = MeasurementPlan {
            restarts_max: 9,
            precision: 0.05,
            ..MeasurementPlan::parse(PLAN).unwrap()
        };
        let mut steady = fake(0);
        assert_eq!(run(&plan, "r", &mut steady).unwrap().rounds, 6);
        let later = Record { restart: 7, ..steady.kept[0].clone() };
        let known =
            StartResult { records: [steady.kept, vec![later]].concat(), failures: Vec::new() };
        let outcome = super::run(&plan, "r", &known, &mut fake(0)).unwrap();
        assert_eq!((outcome.rounds, outcome.known, outcome.starts), (8, 49, 64));
    }

    #[test]
    fn a_run_that_is_asked_to_end_keeps_what_it_has_but_not_what_was_cut_short() {
        let plan = MeasurementPlan::parse(PLAN).unwrap();
        let mut bench = Fake { end_in: 4, ..fake(0) };
        let outcome = run(&plan, "r", &mut bench).unwrap();
        assert_eq!((outcome.starts, outcome.why), (3, "it was interrupted"));
        assert_eq!(bench.kept.len(), 6);
    }
}
