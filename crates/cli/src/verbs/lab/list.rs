//! `millstream lab list`: the content of the store.

use super::place::StoreArgs;
use super::run::failed;
use crate::output::Report;
use millstream_measure::picture::short_time;
use serde_json::json;
use std::fmt::Write;

/// Lists the runs in the store, the oldest first.
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    store: StoreArgs,
}

/// Succeeds when the store can be read.
pub fn run(args: Args) -> anyhow::Result<Report> {
    let store = args.store.open()?;
    let runs = store.list()?;
    let (mut text, mut failures) = (String::new(), Vec::new());
    let mut tell = |run: &str, text: &mut String| -> anyhow::Result<()> {
        let of_run = store.failures(run)?;
        *text += &failed(&of_run);
        failures.extend(of_run);
        Ok(())
    };
    for (index, run) in runs.iter().enumerate() {
        let variant = if run.variant.is_empty() { "" } else { "/" };
        let _ = writeln!(
            text,
            "{:<44} {:>3} starts {:>5} records  max {:>9}  {}  [{}] beside [{}]",
            format!("{}{variant}{}", run.run, run.variant),
            run.restarts,
            run.records,
            short_time(run.max_ns),
            run.kernel,
            run.names,
            run.loads
        );
        if runs[index + 1..].iter().all(|later| later.run != run.run) {
            tell(&run.run, &mut text)?;
        }
    }
    let empty = store.without_records()?;
    for run in &empty {
        let _ = writeln!(text, "{run:<44}   no records");
        tell(run, &mut text)?;
    }
    if runs.is_empty() && empty.is_empty() {
        let _ = writeln!(text, "{} holds no run yet", store.path().display());
    }
    let results = json!({
        "store": store.path(), "runs": runs, "without_records": empty, "failures": failures,
    });
    Ok(Report::done(text, results))
}
