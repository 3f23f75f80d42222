//! `millstream lab report`: a page for readers who know nothing of the run.

use super::sets::SetArgs;
use crate::output::{Report, shown, write_file};
use anyhow::Context;
use millstream_measure::compare::{ChangeRule, compare};
use millstream_measure::report::{ReportView, html, png};
use serde_json::json;
use std::fs::File;
use std::io::BufWriter;
use std::path::PathBuf;

/// Writes a report of runs: one HTML file, which needs no other files, and its charts as PNG.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  millstream lab report last --out report.html
  millstream lab report kernels.jsonl --title 'Four kernels' --out kernels.html")]
pub struct Args {
    #[command(flatten)]
    sets: SetArgs,

    /// File for the report. The charts are written beside it as .png.
    #[arg(long, value_name = "FILE.html", default_value = "report.html")]
    out: PathBuf,

    /// Title of the report.
    #[arg(long, value_name = "TEXT", default_value = "Latency report")]
    title: String,
}

/// Succeeds when both files are written.
pub fn run(args: Args) -> anyhow::Result<Report> {
    let sets = args.sets.read()?;
    let comparisons = compare(&sets, &ChangeRule::default());
    let references = millstream_measure::reference::builtin();
    let failures = args.sets.failures()?;
    let view = ReportView {
        title: &args.title,
        sets: &sets,
        comparisons: &comparisons,
        references: &references,
        failures: &failures,
    };
    let picture = args.out.with_extension("png");
    write_file(&args.out, html(&view))?;
    let fail = || format!("cannot write the file {}", picture.display());
    let file = File::create(&picture).with_context(fail)?;
    png(&view).write_png(BufWriter::new(file)).with_context(fail)?;
    let text = format!("report  {}\nfigures {}\n", args.out.display(), picture.display());
    let labels: Vec<_> = sets.iter().map(|set| &set.label).collect();
    Ok(Report::done(
        text,
        json!({ "html": shown(&args.out), "png": shown(&picture), "sets": labels }),
    ))
}
