//! GNU Radio's receiver on the same recordings.

use super::AtscError;
use crate::gnuradio::{PeerError, Script};
use serde::{Deserialize, Serialize};
use std::path::Path;

/// A running GNU Radio.
#[derive(Debug)]
pub struct GnuRadioReceiver {
    script: Script,
}

/// What the script is to decode.
#[derive(Serialize)]
struct Request<'a> {
    r#in: &'a Path,
    rate_hz: f64,
    out: &'a Path,
    samples_per_symbol: f64,
    cpus: &'a [usize],
}

/// The times of a run.
#[derive(Clone, Copy, Debug, Deserialize)]
pub struct Took {
    /// Wall-clock time, with the set-up of the graph's threads.
    pub wall_s: f64,
    /// CPU time of the process, user and system.
    pub cpu_s: f64,
}

impl GnuRadioReceiver {
    /// Starts GNU Radio with this Python. It ends with the calling thread.
    ///
    /// # Errors
    /// [`PeerError`] when the program does not exist or has no GNU Radio.
    pub fn start(python: &Path) -> Result<Self, PeerError> {
        Ok(Self { script: Script::start(python, include_str!("peer.py"))? })
    }

    /// GNU Radio's version.
    #[must_use]
    pub fn version(&self) -> &str {
        &self.script.version
    }

    /// Decodes a recording of 16-bit samples to a transport stream.
    ///
    /// # Errors
    /// [`AtscError::Peer`] when it ends instead of answering.
    pub fn receive(
        &mut self,
        input: &Path,
        rate_hz: f64,
        output: &Path,
        samples_per_symbol: f64,
        cpus: &[usize],
    ) -> Result<Took, AtscError> {
        Ok(self.script.ask(&Request {
            r#in: input,
            rate_hz,
            out: output,
            samples_per_symbol,
            cpus,
        })?)
    }
}
