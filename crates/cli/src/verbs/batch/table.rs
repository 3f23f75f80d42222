//! `millstream batch table`: parameters and numbers of all results.

use super::ManifestArg;
use crate::output::{Report, count, write_file};
use serde_json::json;
use std::path::{Path, PathBuf};

/// Writes a table (CSV) with one row for each task: its parameters and the numbers of its result.
///
/// A number is called BLOCK.METRIC, for example demod.mer_db. Tasks without a result have empty
/// cells.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  millstream batch table sweep.toml --out sweep.csv
  millstream batch table sweep.toml --out - | column -s, -t")]
pub struct Args {
    #[command(flatten)]
    manifest: ManifestArg,

    /// File for the table; - is standard output.
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
}

/// Writes it.
pub fn run(args: Args) -> anyhow::Result<Report> {
    let batch = args.manifest.read()?;
    let states = batch.states()?;
    let table = millstream_batch::csv(&batch, |at| states[at].name())?;
    if args.out == Path::new("-") {
        return Ok(Report::done(table.clone(), json!({ "table": table })));
    }
    write_file(&args.out, table)?;
    let rows = count(states.len() as u64, "row");
    let text = format!("table    {}: {rows}\n", args.out.display());
    Ok(Report::done(text, json!({ "table": args.out, "rows": states.len() })))
}
