//! Costs as records, so that a measurement plan may run a benchmark like a measurement of latency.

use crate::verbs::latency::samples::entries;
use millstream_measure::{Histogram, Measured, Observed};
use serde_json::Value;

/// The samples of one benchmark.
pub struct Costs {
    /// Its name.
    pub measurement: &'static str,
    /// The start of the present repetition (RFC 3339).
    pub started: String,
    /// Length of each measurement.
    pub seconds: f64,
    /// The samples so far.
    pub records: Vec<Measured>,
}

impl Costs {
    pub fn new(measurement: &'static str, started: String, seconds: f64) -> Self {
        Self { measurement, started, seconds, records: Vec::new() }
    }

    /// Adds a sample: the CPU time of one unit in nanoseconds. `details` name the unit as `time_of`.
    pub fn add(&mut self, series: String, ns: f64, parameters: Value, details: Value) {
        let mut histogram = Histogram::default();
        histogram.record(ns.max(0.0).round() as u64);
        self.records.push(Measured {
            measurement: self.measurement.to_owned(),
            series,
            parameters: entries(parameters),
            started: self.started.clone(),
            seconds: self.seconds,
            observed: Observed::from(histogram),
            details: entries(details),
            ..Measured::default()
        });
    }
}
