//! `millstream batch table`: parameters and numbers of all results.

use super::ManifestArg;
use crate::force::ForceArgs;
use crate::output::{Report, count, shown};
use millstream_batch::ResultTable;
use serde_json::json;
use std::path::{Path, PathBuf};

/// Writes a table with one row for each task: its parameters and the numbers of its result.
///
/// The extension .parquet makes a Parquet file, every other one CSV.
/// A number is called BLOCK.METRIC, for example demod.mer_db. Tasks without a result have empty
/// cells.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  millstream batch table sweep.toml --out sweep.csv
  millstream batch table sweep.toml --out sweep.parquet
  millstream batch table sweep.toml --out - | column -s, -t")]
pub struct Args {
    #[command(flatten)]
    manifest: ManifestArg,

    /// File for the table; - is standard output.
    #[arg(long, value_name = "FILE")]
    out: PathBuf,

    #[command(flatten)]
    force: ForceArgs,
}

/// Writes it.
pub fn run(args: Args) -> anyhow::Result<Report> {
    let batch = args.manifest.read()?;
    let states = batch.states()?;
    let table = ResultTable::of(&batch, |at| states[at].name())?;
    if args.out == Path::new("-") {
        return Ok(Report::done(table.csv(), json!({ "table": table.csv() })));
    }
    match args.out.extension() {
        Some(extension) if extension.eq_ignore_ascii_case("parquet") => {
            args.force.write(&args.out, table.parquet())?
        }
        _ => args.force.write(&args.out, table.csv())?,
    }
    let rows = count(table.rows() as u64, "row");
    let text = format!("table    {}: {rows}\n", args.out.display());
    Ok(Report::done(text, json!({ "table": shown(&args.out), "rows": table.rows() })))
}
