//! `millstream lab list`: what the store holds.

use super::place::StoreArgs;
use super::run::failed;
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
    let (mut text, mut failures) = (String::new(), Vec::new());
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
        if runs.get(index + 1).is_none_or(|next| next.run != run.run) {
            let of_run = store.failures(&run.run)?;
            text += &failed(&of_run);
            failures.extend(of_run);
        }
    }
    if runs.is_empty() {
        let _ = writeln!(text, "{} holds no run yet", store.path().display());
    }
    Ok(Report::done(text, json!({ "store": store.path(), "runs": runs, "failures": failures })))
}
