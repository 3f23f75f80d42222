//! `millstream bench faults`: the outcome of streams under each fault.

use super::way::DIRECTIONS;
use crate::interrupt;
use crate::live::Progress;
use crate::numbers::one_of;
use crate::output::{Report, note};
use millstream_lab::Direction;
use millstream_lab::faults::{self, CASES, Ending, FaultCase, FaultRow};
use serde_json::json;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Instant;

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
    let names = || CASES.iter().map(|case| case.name).collect::<Vec<_>>().join(", ");
    anyhow::ensure!(
        !cases.is_empty(),
        "there is no fault whose name contains \"{}\"; the faults are: {}",
        args.only,
        names()
    );
    let ways = args.direction;
    if args.list {
        return Ok(listing(&cases, ways));
    }
    interrupt::install();
    let mut rows = Vec::new();
    let mut progress = Progress::new(ways.len() * cases.len(), Instant::now());
    for &way in ways {
        for case in &cases {
            let place = progress.next(Instant::now());
            note(format_args!("{place}: {}: {}", way.name(), case.name));
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
    let (mut text, mut faults) = (String::new(), Vec::new());
    for case in cases {
        for way in ways {
            let specs = case.specs(*way);
            // Writing to memory does not fail.
            let _ = writeln!(text, "{:<26} {:<9} {}", case.name, way.name(), specs.join("; "));
            faults.push(json!({ "fault": case.name, "direction": way, "specs": specs }));
        }
    }
    Report::done(text, json!({ "faults": faults }))
}

fn table(rows: &[FaultRow]) -> String {
    let mut text = format!(
        "{:<26} {:<9} {:>6} {:>9} {:>9} {:>8} {:>11}  {}\n",
        "fault", "way", "hits", "expected", "delivered", "lost", "recovery_ms", "lost by; outcome"
    );
    for row in rows {
        let _ = writeln!(
            text,
            "{:<26} {:<9} {:>6} {:>9} {:>9} {:>8} {:>11.0}  {}; {}",
            row.fault,
            row.direction.name(),
            row.hits,
            row.expected,
            row.delivered,
            row.lost_total(),
            row.recovery_ms,
            causes(&row.lost),
            outcome(row),
        );
        for complaint in &row.complaints {
            let _ = writeln!(text, "    FAILED: {complaint}");
        }
    }
    text
}

fn causes(lost: &BTreeMap<&'static str, u64>) -> String {
    if lost.is_empty() {
        return "nothing".to_owned();
    }
    lost.iter().map(|(cause, samples)| format!("{cause} {samples}")).collect::<Vec<_>>().join(", ")
}

fn outcome(row: &FaultRow) -> String {
    match &row.ending {
        Ending::GoesOn => "goes on".to_owned(),
        Ending::Failed(error) => format!("ended: {error}"),
        Ending::Hangs => "HANGS".to_owned(),
    }
}
