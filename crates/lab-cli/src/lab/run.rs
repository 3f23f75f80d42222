//! `millstream-lab lab run`: runs a plan.

use super::place::StoreArgs;
pub use super::planned::results;
use super::planned::{PlanArgs, PlanResults, Planned, verdict};
use super::worker::WORKER;
use crate::interrupt;
use crate::live::{Live, TimeLeft};
use crate::numbers::allowed_cpus;
use crate::output::{Report, note, percent};
use crate::program;
use crate::table::Table;
use anyhow::Context;
use millstream_lab::Host;
use millstream_measure::Failure;
use millstream_measure::design::run::{CellProgress, RunResult};
use millstream_measure::design::{MeasurementPlan, StartResult, Unit, run as carry_out};
use millstream_measure::picture::short_time;
use millstream_measure::store::Store;
use millstream_stats::STARTS_MIN;
use std::fmt::Write as _;
use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Carries out a measurement plan: every measurement under every load, in random order, with
/// several fresh starts.
///
/// The run ends when each figure is precise enough. Records go to the store as soon as they exist.
/// If the run is interrupted, or starts fail, `lab resume` continues it. The processes of loads and
/// measurements end with this command, even if it is killed.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  sudo millstream-lab lab run plans/timer.toml
  sudo millstream-lab lab run plans/timer.toml --records out.jsonl --no-store")]
pub struct Args {
    #[command(flatten)]
    pub planned: PlanArgs,

    #[command(flatten)]
    store: StoreArgs,

    /// Do not store the records. This needs --records FILE.
    #[arg(long, requires = "records", conflicts_with = "store")]
    no_store: bool,

    /// Append the records to a file or device, each as one line of JSON.
    #[arg(long, value_name = "FILE")]
    records: Option<PathBuf>,
}

/// Succeeds when the plan was completed.
pub fn run(args: Args) -> anyhow::Result<Report> {
    let store = if args.no_store { None } else { Some(args.store.open()?) };
    let planned = args.planned.read()?;
    carry_on(&args, planned, store)
}

/// Runs the rest of a run, which is all of it at the beginning.
pub fn carry_on(
    args: &Args,
    mut planned: Planned,
    mut store: Option<Store>,
) -> anyhow::Result<Report> {
    interrupt::install();
    let is_stored = store.is_some();
    let mut file = args.records.as_deref().map(open_records).transpose()?;
    store.as_mut().map_or(Ok(()), |store| planned.begin(store))?;
    let Planned { plan, name, known, .. } = planned;
    let (mut live, mut estimate) = (Live::seldom(), TimeLeft::new(Instant::now()));
    let mut host = Host {
        program: |args| program::command(args),
        worker: WORKER,
        allowed: allowed_cpus()?,
        measured: plan.measured_cpus.clone(),
        settle: Duration::from_secs_f64(plan.settle_s),
        quiet: plan.quiet(),
        keep: Box::new(|unit, given| keep(unit, given, store.as_mut(), file.as_mut())),
        ended: interrupt::asked,
        progress: Box::new(|unit| {
            let (cell, (done, all)) = (unit.cell, unit.number);
            let now = Instant::now();
            let left = estimate.left(now, done, all);
            live.show(now, || {
                let variant = if cell.variant.is_empty() { "" } else { " " };
                let place = format!("{done}/{all}{left}:");
                format!("{place} {}{variant}{} | {}", cell.variant, cell.name, cell.load.name)
            });
        }),
    };
    note(format_args!("run     {name}"));
    let outcome = carry_out(&plan, &name, &known, &mut host);
    drop(host);
    live.end();
    let outcome = outcome?;
    let failure = verdict(&outcome, interrupt::asked(), is_stored);
    let text = table(&plan, &outcome);
    Ok(Report::of(text, &PlanResults { run: &outcome }).failing(failure))
}

fn open_records(path: &Path) -> anyhow::Result<File> {
    let open = || {
        let mut file = OpenOptions::new().append(true).create(true).open(path)?;
        let about = file.metadata()?;
        if about.is_file() && about.len() > 0 {
            let mut last = [0];
            File::open(path)?.read_exact_at(&mut last, about.len() - 1)?;
            // The former writer was killed within a line: the next record gets a line of its own.
            if last != *b"\n" {
                file.write_all(b"\n")?;
            }
        }
        Ok::<_, std::io::Error>(file)
    };
    open().with_context(|| format!("cannot write records to {}", path.display()))
}

fn keep(
    unit: &Unit<'_>,
    known: &StartResult,
    store: Option<&mut Store>,
    file: Option<&mut File>,
) -> Result<(), String> {
    // A record only in the store is harmless; one only in the file would be measured twice.
    store.map_or(Ok(()), |store| store.keep(unit, known)).map_err(|error| error.to_string())?;
    if let Some(file) = file {
        let failures = known.failures.iter().map(|failure| failure.to_line() + "\n");
        let records = known.records.iter().map(|record| record.to_line() + "\n");
        let lines: String = records.chain(failures).collect();
        file.write_all(lines.as_bytes()).map_err(|error| error.to_string())?;
    }
    Ok(())
}

/// Shown in place of an interval that needs more starts.
const MORE_STARTS: &str = "more starts";

/// The results of each figure, and why the run ended.
pub(super) fn table(plan: &MeasurementPlan, outcome: &RunResult) -> String {
    let percent_name = format!("p{}", plan.quantile * 100.0);
    let known = match outcome.known {
        0 => String::new(),
        known => format!("{known} known before, "),
    };
    let share = |share: Option<f64>| share.map_or("–".to_owned(), percent);
    let interval = |line: &CellProgress| {
        line.interval_ns.map_or(MORE_STARTS.to_owned(), |(low, high)| {
            format!("{} and {}", short_time(low as u64), short_time(high as u64))
        })
    };
    let table = Table::of(&outcome.lines)
        .left("", |line| match &*line.variant {
            "" => line.title.clone(),
            variant => format!("{variant}: {}", line.title),
        })
        .right(&percent_name, |line| short_time(line.figure_ns as u64))
        .right("it lies between (95 %)", interval)
        .right("within", |line| share(line.spread.within))
        .right("between", |line| share(line.spread.between))
        .right("max", |line| short_time(line.max_ns));
    let mut text = format!(
        "\n{}: {} rounds, {} starts ({known}{} tried again), until {}\n{}",
        outcome.run,
        outcome.rounds,
        outcome.starts,
        outcome.again,
        outcome.why,
        table.text()
    );
    if outcome.lines.iter().any(|line| line.interval_ns.is_none()) {
        let _ = writeln!(
            text,
            "{MORE_STARTS}: the figure is not precise enough yet; {STARTS_MIN} starts give an \
             interval"
        );
    }
    text + &failed(&outcome.failures)
}

/// The starts without records, and the reasons.
pub(super) fn failed(failures: &[Failure]) -> String {
    let line = |failure: &Failure| {
        let text = failure.to_string();
        format!("failed  {}\n", text.trim().replace('\n', "\n        "))
    };
    failures.iter().map(line).collect()
}
