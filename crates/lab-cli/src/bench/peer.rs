//! GNU Radio beside ours.

use crate::output::note;
use millstream_lab::gnuradio::{GnuRadio, PYTHON};
use std::path::{Path, PathBuf};

/// The comparison with GNU Radio.
#[derive(clap::Args)]
#[group(skip)]
pub(super) struct PeerArgs {
    /// A Python interpreter that can import GNU Radio.
    #[arg(long, value_name = "PROGRAM", conflicts_with = "no_gnuradio")]
    python: Option<PathBuf>,

    /// Do not measure GNU Radio.
    #[arg(long)]
    no_gnuradio: bool,
}

impl PeerArgs {
    /// Starts GNU Radio with a script, if it is wanted and installed; requested by name, it has to
    /// be installed.
    pub(super) fn start(&self, script: &str) -> anyhow::Result<Option<GnuRadio>> {
        if self.no_gnuradio {
            return Ok(None);
        }
        if let Some(python) = &self.python {
            return Ok(Some(GnuRadio::start(python, script)?));
        }
        match GnuRadio::start(Path::new(PYTHON), script) {
            Ok(peer) => Ok(Some(peer)),
            Err(error) => {
                note(format_args!("without GNU Radio: {error}"));
                Ok(None)
            }
        }
    }
}
