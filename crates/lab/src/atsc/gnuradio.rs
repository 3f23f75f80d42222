//! GNU Radio's receiver on the same recordings.

use serde::{Deserialize, Serialize};
use std::path::Path;

/// The script of GNU Radio's receiver.
pub const RECEIVER: &str = include_str!("peer.py");

/// A recording of 16-bit samples that the script is to decode to a transport stream.
#[derive(Serialize)]
pub(super) struct Decode<'a> {
    pub r#in: &'a Path,
    pub rate_hz: f64,
    pub out: &'a Path,
    pub samples_per_symbol: f64,
    pub cpus: &'a [usize],
}

/// The times of a run.
#[derive(Clone, Copy, Debug, Deserialize)]
pub(super) struct Took {
    /// Wall-clock time, with the set-up of the graph's threads.
    pub wall_s: f64,
    /// CPU time of the process, user and system.
    pub cpu_s: f64,
}
