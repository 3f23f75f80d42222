//! `millstream-lab lab import`: records from files into the store.

use super::place::StoreArgs;
use crate::output::Report;
use anyhow::Context;
use millstream_measure::design::StartResult;
use millstream_measure::{Failure, Record};
use std::path::PathBuf;

/// Adds records from files to the store: files of `lab run --records`, or JSON documents of
/// `latency … --json`.
#[derive(clap::Args)]
pub struct Args {
    /// Files of records.
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,

    /// Name of the run that the records become. The default is the name in the file, or for a JSON
    /// document its time.
    #[arg(long, value_name = "NAME")]
    name: Option<String>,

    #[command(flatten)]
    store: StoreArgs,
}

crate::results! {
    /// Records that were added to the store.
    struct ImportResults {
        /// New ones.
        added: usize,
        /// Those that were there already.
        known: usize,
    }
}

/// Succeeds when all records of all files are stored.
pub fn run(args: Args) -> anyhow::Result<Report> {
    let mut all = StartResult::default();
    for path in &args.files {
        let name = || path.display().to_string();
        let text = std::fs::read_to_string(path).with_context(name)?;
        all.records.extend(Record::parse_all(&text).with_context(name)?);
        all.failures.extend(text.lines().filter_map(Failure::of_line));
    }
    if let Some(name) = &args.name {
        all.records.iter_mut().for_each(|record| record.run.clone_from(name));
        all.failures.iter_mut().for_each(|failure| failure.run.clone_from(name));
    }
    let mut store = args.store.open()?;
    let added = store.add(&all)?;
    let known = all.records.len() - added;
    let text = format!("{added} records added, {known} were there already\n");
    Ok(Report::of(text, &ImportResults { added, known }))
}
