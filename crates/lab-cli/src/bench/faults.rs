//! `millstream-lab bench faults`: the outcome of streams under each fault.

use super::way::DIRECTIONS;
use crate::experiment::{Experiment, Unmeasured, in_rounds};
use crate::interrupt;
use crate::numbers::one_of;
use crate::output::{Join, Report};
use crate::table::Table;
use millstream_lab::Direction;
use millstream_lab::faults::{self, CASES, FaultCase, FaultRow};
use millstream_lab::soak::StreamEnd;

/// Tests streams of an emulated radio under many faults, in both directions.
///
/// For each fault the command checks three things: the ledger balances, it agrees with the counters
/// of the radio, and the stream continues or ends with one error. It takes about two minutes.
#[derive(clap::Args)]
pub struct Args {
    /// Only try faults whose name contains this text.
    #[arg(long, value_name = "TEXT", default_value = "")]
    only: String,

    /// Direction of the samples: from the radio (rx), to the radio (tx), or first one and then the
    /// other (both).
    #[arg(long, value_name = "DIRECTION", default_value = "both",
          value_parser = one_of(&DIRECTIONS))]
    direction: &'static [Direction],

    /// List the faults and run nothing.
    #[arg(long)]
    list: bool,
}

crate::results! {
    /// What became of the streams.
    struct FaultResults<'a> {
        /// Each fault in each direction.
        rows: &'a [FaultRow],
    }

    /// With `--list`: all faults.
    struct ListedFaults {
        /// Each fault in each direction.
        faults: Vec<ListedFault>,
    }

    /// A fault that is not tried.
    struct ListedFault {
        /// Its name.
        fault: &'static str,
        /// The direction of the samples.
        direction: Direction,
        /// The faults, as the radio parses them.
        specs: Vec<String>,
    }
}

/// Succeeds when every stream behaved as required.
pub fn run(args: Args) -> anyhow::Result<Report> {
    let cases: Vec<&'static FaultCase> =
        CASES.iter().filter(|case| case.name.contains(&args.only)).collect();
    anyhow::ensure!(
        !cases.is_empty(),
        "there is no fault whose name contains \"{}\"; the faults are: {}",
        args.only,
        CASES.iter().map(|case| case.name).join(", ")
    );
    let cases = each(&cases, args.direction);
    if args.list {
        return Ok(listing(&cases));
    }
    interrupt::install();
    let rows: Vec<_> = in_rounds(&mut Faults, &cases, 1).whole()?.outcomes().collect();
    let unsound = rows.iter().filter(|row| !row.complaints.is_empty()).count();
    let failure = (unsound > 0).then(|| {
        format!("{unsound} of {} streams failed their check: see the table above", rows.len())
    });
    Ok(Report::of(table(&rows), &FaultResults { rows: &rows }).failing(failure))
}

/// Each case in each direction.
fn each(cases: &[&'static FaultCase], ways: &[Direction]) -> Vec<(&'static FaultCase, Direction)> {
    ways.iter().flat_map(|way| cases.iter().map(|case| (*case, *way))).collect()
}

/// The trial of faults.
struct Faults;

impl Experiment for Faults {
    type Case = (&'static FaultCase, Direction);
    type Outcome = FaultRow;

    fn name(&self, (case, way): &Self::Case) -> String {
        format!("{}: {}", way.name(), case.name)
    }

    fn step(&mut self, (case, way): &Self::Case, _: usize) -> Result<FaultRow, Unmeasured> {
        Ok(faults::run(case, *way)?)
    }
}

fn listing(all: &[(&'static FaultCase, Direction)]) -> Report {
    let text = Table::of(all.iter())
        .left("", |(case, _)| case.name)
        .left("", |(_, way)| way.name())
        .left("", |(case, way)| case.specs(*way).join("; "))
        .text();
    let listed = |(case, way): &(&'static FaultCase, Direction)| ListedFault {
        fault: case.name,
        direction: *way,
        specs: case.specs(*way),
    };
    Report::of(text, &ListedFaults { faults: all.iter().map(listed).collect() })
}

fn table(rows: &[FaultRow]) -> String {
    Table::of(rows)
        .left("fault", |row| &row.fault)
        .left("way", |row| row.direction.name())
        .right("hits", |row| row.hits)
        .right("expected", |row| row.expected)
        .right("delivered", |row| row.delivered)
        .right("lost", |row| row.lost_total())
        .right("recovery_ms", |row| format!("{:.0}", row.recovery_ms))
        .left("lost by; outcome", |row| format!("{}; {}", causes(row), outcome(row)))
        .text_with(|row| row.complaints.iter().map(|one| format!("    FAILED: {one}\n")).collect())
}

fn causes(row: &FaultRow) -> String {
    match row.lost.is_empty() {
        true => "nothing".to_owned(),
        false => row.lost.iter().map(|(cause, samples)| format!("{cause} {samples}")).join(", "),
    }
}

fn outcome(row: &FaultRow) -> String {
    match &row.ending {
        StreamEnd::InOrder => "goes on".to_owned(),
        StreamEnd::Failed(error) => format!("ended: {error}"),
        StreamEnd::Hangs => "HANGS".to_owned(),
    }
}
