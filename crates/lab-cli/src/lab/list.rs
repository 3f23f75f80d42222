//! `millstream-lab lab list`: the content of the store.

use super::place::StoreArgs;
use super::run::failed;
use crate::output::{Report, shown};
use crate::table::Table;
use millstream_measure::Failure;
use millstream_measure::picture::short_time;
use millstream_measure::store::Listed;
use std::collections::BTreeMap;
use std::fmt::Write;

/// Lists the runs in the store, the oldest first.
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    store: StoreArgs,
}

crate::results! {
    /// The runs in the store.
    struct StoredRuns<'a> {
        /// Its file.
        store: String,
        /// Each variant of each run.
        runs: &'a [Listed],
        /// Runs that have no record yet.
        without_records: &'a [String],
        /// Starts without records.
        failures: Vec<&'a Failure>,
    }
}

/// Succeeds when the store can be read.
pub fn run(args: Args) -> anyhow::Result<Report> {
    let store = args.store.open()?;
    let runs = store.list();
    let empty = store.without_records();
    let mut failures = BTreeMap::new();
    for run in runs.iter().map(|run| &run.run).chain(&empty) {
        failures.insert(run, store.failures(run));
    }
    // Below the last of a run's variants.
    let is_last = |at: usize| runs[at + 1..].iter().all(|later| later.run != runs[at].run);
    let told = |run: &String| failed(&failures[run]);
    let mut text = Table::of(runs.iter().enumerate())
        .left("", |(_, run)| match &*run.variant {
            "" => run.run.clone(),
            variant => format!("{}/{variant}", run.run),
        })
        .right("", |(_, run)| format!("{} starts", run.restarts))
        .right("", |(_, run)| format!("{} records", run.records))
        .right("", |(_, run)| format!("max {}", short_time(run.max_ns)))
        .left("", |(_, run)| format!("{}  [{}] beside [{}]", run.kernel, run.names, run.loads))
        .text_with(|(at, run)| if is_last(at) { told(&run.run) } else { String::new() });
    for run in &empty {
        let _ = write!(text, "{run:<44}   no records\n{}", told(run));
    }
    if runs.is_empty() && empty.is_empty() {
        let _ = writeln!(text, "{} holds no run yet", store.path().display());
    }
    let failures: Vec<_> = failures.values().flatten().collect();
    let store = shown(store.path());
    let results = StoredRuns { store, runs: &runs, without_records: &empty, failures };
    Ok(Report::of(text, &results))
}
