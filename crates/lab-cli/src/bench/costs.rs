//! Costs as records, so that a measurement plan may run a benchmark like a measurement of latency.

use crate::samples::entries;
use millstream_measure::{Measured, Observed};
use millstream_stats::Histogram;
use serde::Serialize;

/// Returns a sample of one value, in nanoseconds. `series` ends with what the time was spent for.
pub fn cost(
    measurement: &str,
    series: String,
    ns: f64,
    started: &str,
    parameters: &impl Serialize,
) -> Measured {
    let mut histogram = Histogram::default();
    histogram.record(ns.max(0.0).round() as u64);
    Measured {
        measurement: measurement.to_owned(),
        series,
        parameters: entries(parameters),
        started: started.to_owned(),
        observed: Observed::from(histogram),
        ..Measured::default()
    }
}
