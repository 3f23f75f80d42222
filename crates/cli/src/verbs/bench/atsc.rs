//! `millstream bench atsc`: what the television receiver costs and what it hears, beside GNU
//! Radio's.

mod cost;
mod limits;

use crate::output::{Report, note};
use clap::Subcommand;
use millstream_lab::atsc::Peer;
use millstream_lab::gnuradio::PYTHON;
use std::path::{Path, PathBuf};

/// Measures the ATSC receiver: CPU time and speed, beside GNU Radio's on the same recording.
///
/// A recording is generated; our receiver decodes it on one thread and by the plans for all CPUs,
/// GNU Radio's does so with a thread per block, and all take turns. `table` tries both on weak and
/// spoilt signals instead.
#[derive(clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Examples:
  millstream bench atsc
  millstream bench atsc --duration 4 --repeats 7 --samples-per-symbol 1.1 --json
  millstream bench atsc table --store limits.jsonl
  millstream bench atsc table --only noise --duration 20 --no-peer"
)]
pub struct Args {
    #[command(subcommand)]
    what: Option<What>,

    #[command(flatten)]
    cost: cost::Args,
}

#[derive(Subcommand)]
enum What {
    Table(limits::Args),
}

/// GNU Radio, and how it is set.
#[derive(clap::Args)]
#[group(skip)]
struct PeerArgs {
    /// A Python that has GNU Radio.
    #[arg(long, value_name = "PROGRAM", conflicts_with = "no_peer")]
    python: Option<PathBuf>,

    /// Leave GNU Radio out.
    #[arg(long)]
    no_peer: bool,
}

impl PeerArgs {
    /// GNU Radio, if it is wanted and there; asked for by name it has to be there.
    fn start(&self) -> anyhow::Result<Option<Peer>> {
        if self.no_peer {
            return Ok(None);
        }
        if let Some(python) = &self.python {
            return Ok(Some(Peer::start(python)?));
        }
        match Peer::start(Path::new(PYTHON)) {
            Ok(peer) => Ok(Some(peer)),
            Err(error) => {
                note(format_args!("without GNU Radio: {error}"));
                Ok(None)
            }
        }
    }
}

/// Runs the measurement.
pub fn run(args: Args) -> anyhow::Result<Report> {
    match args.what {
        Some(What::Table(args)) => limits::run(args),
        None => cost::run(args.cost),
    }
}

/// A setting of GNU Radio's receiver.
fn samples_per_symbol(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|x| (1.05..=4.0).contains(x));
    number.ok_or_else(|| "give a number from 1.05 to 4, as 1.5".to_owned())
}
