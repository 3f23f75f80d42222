//! `millstream graph draw`: a picture of the best plan for a graph.

use super::placed::PlaceArgs;
use crate::force::ForceArgs;
use crate::output::{Report, shown};
use anyhow::bail;
use std::path::{Path, PathBuf};

/// Draws a graph by the plan that `millstream graph plan` finds: blocks on cores and caches, and
/// the data rates between them.
///
/// Without --profile it measures the blocks first, as `millstream graph plan` does.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  millstream graph plan graphs/atsc-rx.toml --set in=tv.cf32 --set out=tv.ts --json > costs.json
  millstream graph draw graphs/atsc-rx.toml --profile costs.json --out plan.svg
  millstream graph draw graphs/atsc-rx.toml --profile costs.json --out - --as dot | dot -Tpdf")]
pub struct Args {
    #[command(flatten)]
    place: PlaceArgs,

    /// File for the picture: .svg or .dot (Graphviz); - is standard output.
    #[arg(long, value_name = "FILE")]
    out: PathBuf,

    /// Format of the picture, if the file name does not show it.
    #[arg(long = "as", value_name = "KIND", value_enum)]
    kind: Option<Kind>,

    #[command(flatten)]
    force: ForceArgs,
}

/// Kinds of pictures.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Kind {
    /// Scalable Vector Graphics.
    Svg,
    /// Graphviz's language, dot.
    Dot,
}

crate::results! {
    /// The picture.
    struct DrawnGraph {
        /// Its file, or the picture itself with `--out -`.
        picture: String,
    }
}

/// Places the blocks, and draws the result.
pub fn run(args: Args) -> anyhow::Result<Report> {
    // Before the measurement.
    let kind = match args.kind {
        Some(kind) => kind,
        None => told_by(&args.out)?,
    };
    args.force.check(&args.out)?;
    let found = args.place.place()?;
    let picture = match kind {
        Kind::Svg => found.placed.svg(&found.title),
        Kind::Dot => found.placed.dot(&found.title),
    };
    if args.out == Path::new("-") {
        return Ok(Report::of(picture.clone(), &DrawnGraph { picture }));
    }
    args.force.write(&args.out, picture)?;
    let text = format!("{}\npicture  {}\n", found.title, args.out.display());
    Ok(Report::of(text, &DrawnGraph { picture: shown(&args.out) }))
}

fn told_by(out: &Path) -> anyhow::Result<Kind> {
    match out.extension().and_then(|end| end.to_str()) {
        Some("svg") => Ok(Kind::Svg),
        Some("dot" | "gv") => Ok(Kind::Dot),
        _ => bail!(
            "--out {}: the name does not show the format: use a name that ends in .svg or .dot, \
             or add --as svg or --as dot",
            out.display()
        ),
    }
}
