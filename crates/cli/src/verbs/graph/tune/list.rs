//! The list of stored plans, and their removal.

use crate::output::{Report, describe, shown};
use crate::stored::{self, PlanStoreEntry};
use millstream_flow::{GraphFile, Registry};
use millstream_planner::tune::{Percent, RatioEstimate, StoredPlan};
use std::fmt::Write;

crate::results! {
    /// A file of the store; `--list` makes a list of them.
    struct ListedPlan {
        /// The file.
        path: String,
        /// The plan, and how it was found.
        #[serde(skip_serializing_if = "Option::is_none")]
        record: Option<StoredPlan>,
        /// Why it cannot be read.
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<String>,
    }

    /// A removal from the store.
    struct ForgottenPlan {
        /// The file.
        path: String,
        /// Whether it was there.
        forgotten: bool,
    }
}

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
                let (path, record) = (shown(&path), Some(record));
                results.push(ListedPlan { path, record, error: None });
            }
            Err(error) => {
                let error = describe(&error.into());
                let _ = writeln!(text, "{error}");
                let (path, error) = (shown(&path), Some(error));
                results.push(ListedPlan { path, record: None, error });
            }
        }
    }
    if text.is_empty() {
        text = "nothing is stored; `millstream graph tune GRAPH.toml` finds and stores a plan\n"
            .into();
    }
    Ok(Report::of(text, &results))
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
    Ok(Report::of(text, &ForgottenPlan { path: shown(&path), forgotten }))
}
