//! `millstream lab list`: what the store holds.

use super::place::StoreArgs;
use crate::output::Report;
use millstream_lab::picture::short_time;
use serde_json::json;
use std::fmt::Write;

/// Lists the runs in the store, the oldest first.
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    store: StoreArgs,
}

/// Succeeds when the store can be read.
pub fn run(args: &Args) -> anyhow::Result<Report> {
    let store = args.store.open()?;
    let runs = store.list()?;
    let mut text = String::new();
    for run in &runs {
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
    }
    if runs.is_empty() {
        let _ = writeln!(text, "{} holds no run yet", store.path().display());
    }
    Ok(Report::done(text, json!({ "store": store.path(), "runs": runs })))
}
