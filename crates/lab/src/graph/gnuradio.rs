//! GNU Radio on the same graphs.

use super::GraphRate;
use super::case::GraphCase;
use crate::gnuradio::{GnuRadio, PeerError};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The script of GNU Radio's graphs.
pub const GRAPHS: &str = include_str!("peer.py");

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

/// Measures a graph on these CPUs.
pub(super) fn measure(
    peer: &mut GnuRadio,
    case: GraphCase,
    cpus: &[usize],
    warm_up: Duration,
    time: Duration,
) -> Result<GraphRate, PeerError> {
    let answer: Answer = peer.ask(&Request {
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
