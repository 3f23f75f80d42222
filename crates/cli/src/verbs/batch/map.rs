//! `millstream batch map`: a number over two swept parameters, as a picture.

use super::ManifestArg;
use crate::force::ForceArgs;
use crate::output::{Report, shown};
use millstream_batch::{Best, Confidence, HeatMap, MapRequest};
use std::path::{Path, PathBuf};

/// Draws how a number of the results depends on two swept parameters, and marks the best setting.
///
/// Each cell shows the mean over the recordings; where further parameters are swept, that of the
/// best setting of the cell. The best setting is compared with each other one, recording by
/// recording, and the least sure comparison is shown: the difference, its 95 % confidence interval
/// (all comparisons at once), and whether it may be chance.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  millstream batch map sweep.toml --value demod.mer_db --x rate --y cn --out map.svg
  millstream batch map sweep.toml --value demod.uncorrected_packets --lowest --x a --y b --out -")]
pub struct Args {
    #[command(flatten)]
    manifest: ManifestArg,

    /// Number of the results: BLOCK.METRIC, a column of `millstream batch table`.
    #[arg(long, value_name = "NAME")]
    value: String,

    /// Parameter across.
    #[arg(long, value_name = "NAME")]
    x: String,

    /// Parameter up.
    #[arg(long, value_name = "NAME")]
    y: String,

    /// The lowest value is the best, not the highest.
    #[arg(long)]
    lowest: bool,

    /// File for the picture (SVG); - is standard output.
    #[arg(long, value_name = "FILE")]
    out: PathBuf,

    #[command(flatten)]
    force: ForceArgs,
}

crate::results! {
    /// The picture, and the best setting.
    struct DrawnMap<'a> {
        /// Its file, or the picture itself with `--out -`.
        picture: String,
        /// The best setting.
        best: &'a str,
        /// The comparison, when the picture is a file; all its fields are here.
        #[serde(flatten)]
        compared: Option<ComparedSetting<'a>>,
    }

    /// The best setting and the next.
    struct ComparedSetting<'a> {
        /// Its mean over the recordings.
        best_value: f64,
        /// Half the width of the confidence interval of that.
        best_half_width: Option<f64>,
        /// The least sure comparison.
        next_best: Option<&'a Confidence>,
    }
}

/// Draws it.
pub fn run(args: Args) -> anyhow::Result<Report> {
    let batch = args.manifest.read()?;
    let best = if args.lowest { Best::Lowest } else { Best::Highest };
    let request = MapRequest { value: args.value, x: args.x, y: args.y, best };
    let map = HeatMap::of(&batch, request)?;
    let (picture, best) = (map.svg(), map.best());
    if args.out == Path::new("-") {
        return Ok(Report::of(picture.clone(), &DrawnMap { picture, best: &best, compared: None }));
    }
    args.force.write(&args.out, picture)?;
    let text = format!(
        "best     {best}\n         {}\npicture  {}\n",
        map.confidence(),
        args.out.display()
    );
    let compared = Some(ComparedSetting {
        best_value: map.best_value(),
        best_half_width: map.half_width(),
        next_best: map.compared(),
    });
    Ok(Report::of(text, &DrawnMap { picture: shown(&args.out), best: &best, compared }))
}
