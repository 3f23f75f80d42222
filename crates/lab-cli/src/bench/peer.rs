//! GNU Radio beside ours.

use crate::output::note;
use millstream_lab::gnuradio::{PYTHON, PeerError};
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
    /// Starts GNU Radio, if it is wanted and installed; requested by name, it has to be installed.
    pub(super) fn start<P>(
        &self,
        start: fn(&Path) -> Result<P, PeerError>,
    ) -> anyhow::Result<Option<P>> {
        if self.no_gnuradio {
            return Ok(None);
        }
        if let Some(python) = &self.python {
            return Ok(Some(start(python)?));
        }
        match start(Path::new(PYTHON)) {
            Ok(peer) => Ok(Some(peer)),
            Err(error) => {
                note(format_args!("without GNU Radio: {error}"));
                Ok(None)
            }
        }
    }
}
