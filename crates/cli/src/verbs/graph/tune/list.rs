//! The list of stored plans, and their removal.

use crate::output::{Report, describe, shown};
use crate::stored::{self, PlanStoreEntry};
use millstream_flow::{GraphFile, Registry};
use millstream_planner::tune::{Percent, RatioEstimate, StoredPlan};
use serde_json::json;
use std::fmt::Write;

/// Lists all plans in the store.
pub fn run() -> anyhow::Result<Report> {
    let (mut text, mut results) = (String::new(), Vec::new());
    for (path, record) in stored::store()?.list()? {
        match record {
            Ok(record) => {
                let StoredPlan { graph, tuned_at, what, machine, .. } = &record;
                let (low, high) = (record.gain_low, record.gain_high);
                let gain = Percent(RatioEstimate { estimate: record.gain, low, high, pairs: 0 });
                let _ = writeln!(text, "{graph}: {gain}, {what}\n    {tuned_at}, {machine}");
                let _ = writeln!(text, "    {}", path.display());
                results.push(json!({ "path": shown(&path), "record": record }));
            }
            Err(error) => {
                let error = describe(&error.into());
                let _ = writeln!(text, "{error}");
                results.push(json!({ "path": shown(&path), "error": error }));
            }
        }
    }
    if text.is_empty() {
        text = "nothing is stored; `millstream graph tune GRAPH.toml` finds and stores a plan\n"
            .into();
    }
    Ok(Report::done(text, json!(results)))
}

/// Removes the plan of a graph.
pub fn forget(file: &GraphFile, registry: &Registry, set: &[String]) -> anyhow::Result<Report> {
    let place = PlanStoreEntry::of(file, registry, set)?;
    let path = place.store.path(&place.key);
    let forgotten = place.store.forget(&place.key)?;
    let text = match forgotten {
        true => format!("forgotten: {}\n", path.display()),
        false => "nothing was stored for this graph on this machine\n".to_owned(),
    };
    Ok(Report::done(text, json!({ "path": shown(&path), "forgotten": forgotten })))
}
