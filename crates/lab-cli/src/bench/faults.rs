//! `millstream-lab bench faults`: the outcome of streams under each fault.

use super::way::DIRECTIONS;
use crate::interrupt;
use crate::live::Steps;
use crate::numbers::one_of;
use crate::output::{Join, Report};
use crate::table::Table;
use millstream_lab::Direction;
use millstream_lab::faults::{self, CASES, Ending, FaultCase, FaultRow};
use serde_json::json;

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

/// Succeeds when every stream behaved as required.
pub fn run(args: Args) -> anyhow::Result<Report> {
    let cases: Vec<&FaultCase> =
        CASES.iter().filter(|case| case.name.contains(&args.only)).collect();
    anyhow::ensure!(
        !cases.is_empty(),
        "there is no fault whose name contains \"{}\"; the faults are: {}",
        args.only,
        CASES.iter().map(|case| case.name).join(", ")
    );
    let ways = args.direction;
    if args.list {
        return Ok(listing(&cases, ways));
    }
    interrupt::install();
    let mut rows = Vec::new();
    let mut steps = Steps::new(ways.len() * cases.len());
    for &way in ways {
        for case in &cases {
            steps.next(|| format!("{}: {}", way.name(), case.name));
            rows.push(faults::run(case, way)?);
            anyhow::ensure!(
                !interrupt::asked(),
                "interrupted before all faults were tried: run the command again for a result"
            );
        }
    }
    let unsound = rows.iter().filter(|row| !row.complaints.is_empty()).count();
    let failure = (unsound > 0).then(|| {
        format!("{unsound} of {} streams failed their check: see the table above", rows.len())
    });
    Ok(Report { text: table(&rows), results: json!({ "rows": rows }), failure })
}

fn listing(cases: &[&FaultCase], ways: &[Direction]) -> Report {
    let each = |case| ways.iter().map(move |way: &Direction| (case, *way));
    let all: Vec<(&&FaultCase, Direction)> = cases.iter().flat_map(each).collect();
    let text = Table::of(all.iter())
        .left("", |(case, _)| case.name)
        .left("", |(_, way)| way.name())
        .left("", |(case, way)| case.specs(*way).join("; "))
        .text();
    let mut faults = Vec::new();
    for (case, way) in &all {
        faults.push(json!({ "fault": case.name, "direction": way, "specs": case.specs(*way) }));
    }
    Report::done(text, json!({ "faults": faults }))
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
        Ending::GoesOn => "goes on".to_owned(),
        Ending::Failed(error) => format!("ended: {error}"),
        Ending::Hangs => "HANGS".to_owned(),
    }
}
