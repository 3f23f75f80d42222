//! GNU Radio on the same graphs.

use super::GraphRate;
use super::case::GraphCase;
use crate::gnuradio::{PeerError, Script};
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::time::Duration;

/// A running GNU Radio.
#[derive(Debug)]
pub struct GnuRadioGraph {
    script: Script,
}

/// What the script is to measure.
#[derive(Serialize)]
struct Request<'a> {
    kernel: &'a str,
    item: &'a str,
    pipes: usize,
    stages: usize,
    cpus: &'a [usize],
    warm_up_s: f64,
    time_s: f64,
}

#[derive(Deserialize)]
struct Answer {
    seconds: f64,
    items: f64,
    cpu_s: f64,
    switches: f64,
}

impl GnuRadioGraph {
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

    /// Measures a graph on these CPUs.
    ///
    /// # Errors
    /// [`PeerError`] when the script ends instead.
    pub fn measure(
        &mut self,
        case: GraphCase,
        cpus: &[usize],
        warm_up: Duration,
        time: Duration,
    ) -> Result<GraphRate, PeerError> {
        let answer: Answer = self.script.ask(&Request {
            kernel: case.kernel.name(),
            item: case.item.name(),
            pipes: case.shape.pipes,
            stages: case.shape.stages,
            cpus,
            warm_up_s: warm_up.as_secs_f64(),
            time_s: time.as_secs_f64(),
        })?;
        Ok(GraphRate {
            items_per_s: answer.items / answer.seconds,
            cpu_s_per_gigaitem: answer.cpu_s / answer.items.max(1.0) * 1e9,
            switches_per_million: answer.switches / answer.items.max(1.0) * 1e6,
            migrations: None,
        })
    }
}
