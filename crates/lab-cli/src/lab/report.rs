//! `millstream-lab lab report`: a page for readers who know nothing of the run.

use super::sets::SetArgs;
use crate::force::ForceArgs;
use crate::output::{Report, shown};
use millstream_measure::compare::{ChangeRule, compare};
use millstream_measure::report::{ReportView, html, png};
use std::path::PathBuf;

/// Writes a report of runs: one HTML file, which needs no other files, and its charts as PNG.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  millstream-lab lab report last --out report.html
  millstream-lab lab report kernels.jsonl --title 'Four kernels' --out kernels.html")]
pub struct Args {
    #[command(flatten)]
    sets: SetArgs,

    /// File for the report. The charts are written beside it as .png.
    #[arg(long, value_name = "FILE.html", default_value = "report.html")]
    out: PathBuf,

    /// Title of the report.
    #[arg(long, value_name = "TEXT", default_value = "Latency report")]
    title: String,

    #[command(flatten)]
    force: ForceArgs,
}

crate::results! {
    /// The files of a report.
    struct WrittenReport<'a> {
        /// The page.
        html: String,
        /// The charts.
        png: String,
        /// The sets in it.
        sets: Vec<&'a str>,
    }
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
    args.force.check(&picture)?;
    args.force.write(&args.out, html(&view))?;
    let mut charts = Vec::new();
    png(&view).write_png(&mut charts)?;
    args.force.write(&picture, charts)?;
    let text = format!("report  {}\nfigures {}\n", args.out.display(), picture.display());
    let sets = sets.iter().map(|set| &*set.label).collect();
    let results = WrittenReport { html: shown(&args.out), png: shown(&picture), sets };
    Ok(Report::of(text, &results))
}
