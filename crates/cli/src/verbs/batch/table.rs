//! `millstream batch table`: parameters and numbers of all results.

use super::ManifestArg;
use crate::force::ForceArgs;
use crate::output::{Report, count, shown};
use millstream_batch::ResultTable;
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

crate::results! {
    /// The table.
    struct WrittenTable {
        /// Its file, or the table itself with `--out -`.
        table: String,
        /// Its rows, when it is a file.
        #[serde(skip_serializing_if = "Option::is_none")]
        rows: Option<usize>,
    }
}

/// Writes it.
pub fn run(args: Args) -> anyhow::Result<Report> {
    let batch = args.manifest.read()?;
    let states = batch.states()?;
    let table = ResultTable::of(&batch, |at| states[at].name())?;
    if args.out == Path::new("-") {
        return Ok(Report::of(table.csv(), &WrittenTable { table: table.csv(), rows: None }));
    }
    match args.out.extension() {
        Some(extension) if extension.eq_ignore_ascii_case("parquet") => {
            args.force.write(&args.out, table.parquet())?
        }
        _ => args.force.write(&args.out, table.csv())?,
    }
    let rows = table.rows();
    let text = format!("table    {}: {}\n", args.out.display(), count(rows as u64, "row"));
    Ok(Report::of(text, &WrittenTable { table: shown(&args.out), rows: Some(rows) }))
}
