//! Carrying out a plan.

use std::collections::BTreeMap;

use serde::Serialize;

use super::plan::{Cell, Plan, PlanError};
use super::variance::{Precision, Spread};
use crate::Summary;
use crate::record::{Measured, Record};

/// Tries of a start that failed before the run gives it up.
const TRIES: u32 = 2;

/// One fresh start of one cell.
#[derive(Debug, Clone, Copy)]
pub struct Unit<'a> {
    /// What is measured.
    pub cell: &'a Cell,
    /// Which start of it, from 0.
    pub restart: u32,
    /// Which start of the run, from 0, and how many are foreseen.
    pub number: (usize, usize),
}

/// Where a plan is carried out: a machine, or a test's imitation of one.
pub trait Bench {
    /// Starts the load and the program, and takes all samples: without their place in the run.
    ///
    /// # Errors
    /// Why there are none, in words.
    fn start(&mut self, unit: &Unit<'_>) -> Result<Vec<Record>, String>;

    /// Keeps records for good.
    ///
    /// # Errors
    /// Why not, in words.
    fn keep(&mut self, records: &[Record]) -> Result<(), String>;

    /// Whether somebody asked to end.
    fn ended(&self) -> bool;

    /// Says of a record of a start of `cell` where it belongs.
    fn place(&self, record: &mut Record, cell: &Cell) {
        record.variant.clone_from(&cell.variant);
        record.side = cell.side;
        record.name.clone_from(&cell.name);
        record.load.clone_from(&cell.load.name);
    }
}

/// Why a run ended before its end.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// The plan.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// A cell gives nothing.
    #[error("{cell}: {reason} ({TRIES} starts in a row failed; what was measured is kept)")]
    Start {
        /// Which.
        cell: String,
        /// Why.
        reason: String,
    },
    /// Records are lost.
    #[error("the results cannot be kept: {0}")]
    Keep(String),
}

/// What a run was.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Outcome {
    /// Its name.
    pub run: String,
    /// Starts that gave samples.
    pub starts: u32,
    /// Starts that had to be tried again.
    pub again: u32,
    /// Rounds.
    pub rounds: u32,
    /// Why it ended there.
    pub why: &'static str,
    /// Each cell and series.
    pub lines: Vec<Line>,
}

/// What is known of a cell's series.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Line {
    /// Variant; may be empty.
    pub variant: String,
    /// Measurement, series and load.
    pub title: String,
    /// The plan's quantile: over starts, nanoseconds.
    pub figure_ns: f64,
    /// Half of its 95 % interval as a share; none with one start.
    pub half_width: Option<f64>,
    /// Spread within and between starts.
    pub spread: Spread,
    /// The largest of all samples' maxima, nanoseconds.
    pub max_ns: u64,
    #[serde(skip)]
    starts: BTreeMap<u32, Vec<f64>>,
}

/// Carries out a plan as the run of this name.
///
/// # Errors
/// [`RunError`]; records up to then are kept.
pub fn run(plan: &Plan, name: &str, bench: &mut dyn Bench) -> Result<Outcome, RunError> {
    let cells = plan.cells()?;
    let mut book = Book::default();
    let (mut starts, mut again, mut rounds) = (0, 0, 0);
    let foreseen = cells.len() * plan.restarts as usize;
    let why = 'run: loop {
        for index in plan.order(rounds, cells.len()) {
            if bench.ended() {
                break 'run "it was asked to end";
            }
            let number = (starts as usize, foreseen.max(starts as usize + 1));
            let unit = Unit { cell: &cells[index], restart: rounds, number };
            let (records, failed) = take(&unit, name, bench)?;
            again += failed;
            let Some(records) = records else { break 'run "it was asked to end" };
            book.add(plan, &records);
            bench.keep(&records).map_err(RunError::Keep)?;
            starts += 1;
        }
        rounds += 1;
        if rounds >= plan.restarts && book.is_precise(plan.precision) {
            break "every figure is known well enough";
        }
        if rounds >= plan.restarts_max {
            break "that was the last round";
        }
    };
    Ok(Outcome { run: name.to_owned(), starts, again, rounds, why, lines: book.lines() })
}

/// The records of a start, in their places, and how many starts failed before it. Those of a start
/// during which somebody asked to end are none: the program was asked as well, and has cut short
/// what would count as a whole sample.
fn take(
    unit: &Unit<'_>,
    run: &str,
    bench: &mut dyn Bench,
) -> Result<(Option<Vec<Record>>, u32), RunError> {
    let cell = unit.cell;
    let mut failed = 0;
    loop {
        let outcome = bench.start(unit);
        if bench.ended() {
            return Ok((None, failed));
        }
        match outcome {
            Ok(mut records) => {
                for record in &mut records {
                    run.clone_into(&mut record.run);
                    record.restart = unit.restart;
                    bench.place(record, cell);
                }
                return Ok((Some(records), failed));
            }
            Err(reason) => {
                failed += 1;
                if failed == TRIES {
                    let variant = cell.variant.as_str();
                    let comma = if variant.is_empty() { "" } else { ", " };
                    let cell = format!("{variant}{comma}{} | {}", cell.name, cell.load.name);
                    return Err(RunError::Start { cell, reason });
                }
            }
        }
    }
}

/// The figures of all cells.
#[derive(Default)]
struct Book(BTreeMap<(String, String), Line>);

impl Book {
    fn add(&mut self, plan: &Plan, records: &[Record]) {
        for record in records {
            let key = (record.title(), record.variant.clone());
            let line = self.0.entry(key).or_insert_with(|| Line {
                variant: record.variant.clone(),
                title: record.title(),
                figure_ns: 0.0,
                half_width: None,
                spread: Spread { within: None, between: None },
                max_ns: 0,
                starts: BTreeMap::new(),
            });
            let Measured { observed, .. } = &record.measured;
            let figure = observed.histogram.quantile_ns(plan.quantile) as f64;
            line.starts.entry(record.restart).or_default().push(figure);
            line.max_ns = line.max_ns.max(observed.histogram.max_ns());
            line.settle();
        }
    }

    fn is_precise(&self, precision: f64) -> bool {
        let known = |line: &Line| line.half_width.is_some_and(|half| half <= precision);
        self.0.values().all(known)
    }

    fn lines(self) -> Vec<Line> {
        self.0.into_values().collect()
    }
}

impl Line {
    fn settle(&mut self) {
        let starts: Vec<Vec<f64>> = self.starts.values().cloned().collect();
        let middle = |start: &Vec<f64>| Some(Summary::of(start)?.median);
        let figures: Vec<f64> = starts.iter().filter_map(middle).collect();
        let precision = Precision::of(&figures);
        self.figure_ns = precision.map_or(0.0, |precision| precision.figure);
        self.half_width = precision.map(|known| known.half_width).filter(|half| half.is_finite());
        self.spread = Spread::of(&starts);
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
        kept: Vec<Record>,
        started: usize,
        /// Somebody asks to end during this start.
        end_in: usize,
    }

    impl Bench for Fake {
        fn start(&mut self, unit: &Unit<'_>) -> Result<Vec<Record>, String> {
            if self.fail > 0 {
                self.fail -= 1;
                return Err("no luck".to_owned());
            }
            self.started += 1;
            let base = 10_000 + u64::from(unit.restart % 2) * self.spread;
            let sample = |sample| {
                let mut record = record("unplaced", &[base + u64::from(sample)]);
                record.sample = sample;
                record
            };
            Ok((0..2).map(sample).collect())
        }

        fn keep(&mut self, records: &[Record]) -> Result<(), String> {
            self.kept.extend_from_slice(records);
            Ok(())
        }

        fn ended(&self) -> bool {
            self.started >= self.end_in
        }
    }

    fn fake(spread: u64) -> Fake {
        Fake { spread, fail: 0, kept: Vec::new(), started: 0, end_in: usize::MAX }
    }

    #[test]
    fn a_steady_machine_ends_early_and_an_unsteady_one_at_the_last_round() {
        let plan = Plan { restarts_max: 9, precision: 0.05, ..Plan::parse(PLAN).unwrap() };
        let mut steady = fake(0);
        let outcome = run(&plan, "r", &mut steady).unwrap();
        assert_eq!((outcome.rounds, outcome.starts), (4, 32));
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
        let plan = Plan::parse(PLAN).unwrap();
        let mut once = Fake { fail: 1, ..fake(0) };
        assert_eq!(run(&plan, "r", &mut once).unwrap().again, 1);
        let mut twice = Fake { fail: 2, ..fake(0) };
        let error = run(&plan, "r", &mut twice).unwrap_err().to_string();
        assert!(error.contains("no luck (2 starts in a row failed"), "{error}");
    }

    #[test]
    fn a_run_that_is_asked_to_end_keeps_what_it_has_but_not_what_was_cut_short() {
        let plan = Plan::parse(PLAN).unwrap();
        let mut bench = Fake { end_in: 4, ..fake(0) };
        let outcome = run(&plan, "r", &mut bench).unwrap();
        assert_eq!((outcome.starts, outcome.why), (3, "it was asked to end"));
        assert_eq!(bench.kept.len(), 6);
    }
}
