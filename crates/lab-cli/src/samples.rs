//! Samples of a measurement as text: a line a series, the samples of each together.

use crate::table::Table;
use millstream_measure::Measured;
use millstream_measure::extreme::{Estimate, NoEstimate};
use millstream_measure::picture::{draw, short_time};
use millstream_stats::Histogram;
use serde::Serialize;
use serde_json::{Map, Value};
use std::fmt::Write;

/// Range of the estimate of the largest latency: this many times the number of values seen.
const AHEAD: u64 = 10;
/// Seed of the interval's bootstrap.
const SEED: u64 = 1;

/// The fields of a struct that have a value, as parameters or details of a record.
pub fn entries(fields: &impl Serialize) -> Map<String, Value> {
    let Ok(Value::Object(mut entries)) = serde_json::to_value(fields) else { return Map::new() };
    entries.retain(|_, value| !value.is_null());
    entries
}

/// Series in the order in which they came, each with its samples.
pub fn series(records: &[Measured]) -> Vec<(&str, Vec<&Measured>)> {
    let mut all: Vec<(&str, Vec<&Measured>)> = Vec::new();
    for record in records {
        match all.iter_mut().find(|(name, _)| *name == record.series) {
            Some((_, samples)) => samples.push(record),
            None => all.push((&record.series, vec![record])),
        }
    }
    all
}

/// All values of a series.
pub fn together(samples: &[&Measured]) -> Histogram {
    let mut all = Histogram::default();
    samples.iter().for_each(|sample| all.merge(&sample.observed.histogram));
    all
}

/// The estimate from all samples together.
fn estimate(samples: &[&Measured]) -> Result<Estimate, NoEstimate> {
    let blocks: Vec<_> = samples.iter().map(|sample| &sample.observed.blocks).collect();
    Estimate::of_samples(&blocks, together(samples).count() * AHEAD, SEED)
}

/// The table, and the facts about the maximum, for one sample each.
pub fn text(title: &str, records: &[Measured], histograms: bool) -> String {
    let all = series(records);
    let rows = all.iter().map(|(name, samples)| (*name, samples, together(samples)));
    let rows: Vec<_> = rows.collect();
    let quantile = |share| move |row: &(_, _, Histogram)| short_time(row.2.quantile_ns(share));
    let table = Table::of(&rows)
        .left("", |row| row.0)
        .right("count", |row| row.2.count())
        .right("min", |row| short_time(row.2.min_ns()))
        .right("mode", |row| short_time(row.2.mode_ns()))
        .right("p50", quantile(0.5))
        .right("p99", quantile(0.99))
        .right("p99.9", quantile(0.999))
        .right("max", |row| short_time(row.2.max_ns()));
    let mut text = format!("\n{title}\n{}", table.text_with(|row| troubles(row.1)));
    text += "\n";
    for (name, samples) in &all {
        text += &maximum(name, samples);
    }
    for (name, samples) in all.iter().filter(|_| histograms) {
        let _ = write!(text, "\n{name}\n{}", draw(&together(samples)));
    }
    text
}

/// All values of one part of a series.
pub fn part(samples: &[&Measured], at: usize) -> Histogram {
    let mut all = Histogram::default();
    samples.iter().for_each(|sample| all.merge(&sample.stages[at].histogram));
    all
}

/// A table of the parts of a series' latency, in the order of time.
pub fn parts(series: &str, samples: &[&Measured]) -> String {
    let values = together(samples).count().max(1);
    let total = |at: usize| samples.iter().map(|one| one.stages[at].total_ns).sum::<u64>();
    let quantile = |at: usize, share| short_time(part(samples, at).quantile_ns(share));
    let table = Table::of(0..samples[0].stages.len())
        .left(series, |at| format!("  {}", samples[0].stages[at].name))
        .right("mean", |at| short_time(total(at) / values))
        .right("p50", |at| quantile(at, 0.5))
        .right("p99", |at| quantile(at, 0.99))
        .right("max", |at| quantile(at, 1.0));
    format!("\n{}", table.text())
}

/// The problems of a series, a line each.
pub fn troubles(samples: &[&Measured]) -> String {
    let mut text = String::new();
    let names = samples.iter().flat_map(|sample| sample.counters.keys());
    let names: std::collections::BTreeSet<_> = names.collect();
    for name in names {
        let count: u64 = samples.iter().filter_map(|sample| sample.counters.get(name)).sum();
        if count > 0 {
            let _ = writeln!(text, "  {name}: {count}");
        }
    }
    text
}

/// When the maximum came, and the expected one.
fn maximum(name: &str, samples: &[&Measured]) -> String {
    let mut text = String::new();
    if let [sample] = samples
        && let Some(last) = sample.observed.new_maxima.last()
    {
        let _ = writeln!(
            text,
            "{name}: {} new maxima, the last, {}, after {:.1} of {:.1} s",
            sample.observed.new_maxima.len(),
            short_time(last.value_ns),
            last.at_ns as f64 / 1e9,
            sample.seconds
        );
    }
    let indent = " ".repeat(name.len() + 2);
    let _ = match estimate(samples) {
        Ok(estimate) => writeln!(
            text,
            "{indent}the largest of {} to come lies between {} with 95 %, as likely above as below \
             {}\n{indent}({}, shape {:+.2})",
            estimate.values,
            estimate.between(),
            short_time(estimate.largest_ns as u64),
            tail(estimate.shape),
            estimate.shape
        ),
        Err(why) => writeln!(text, "{indent}no estimate of the tail: {why}"),
    };
    text
}

/// The tail in words; an estimate of a heavy tail is a warning rather than a bound.
fn tail(shape: f64) -> &'static str {
    match shape {
        _ if shape > 0.5 => "very heavy tail: no bound can be given",
        _ if shape > 0.1 => "heavy tail",
        _ if shape > -0.1 => "exponential tail",
        _ => "bounded tail",
    }
}

crate::results! {
    /// The figures of a series.
    pub struct SeriesFigures {
        /// Its name.
        series: String,
        /// Values.
        count: u64,
        /// The shortest, nanoseconds.
        min_ns: u64,
        /// The most frequent, nanoseconds.
        mode_ns: u64,
        /// The median, nanoseconds.
        p50_ns: u64,
        /// The 90th percentile, nanoseconds.
        p90_ns: u64,
        /// The 99th percentile, nanoseconds.
        p99_ns: u64,
        /// The 99.9th percentile, nanoseconds.
        p99_9_ns: u64,
        /// The longest, nanoseconds.
        max_ns: u64,
        /// The estimate of the largest value to come.
        tail: Option<Estimate>,
    }
}

/// The figures of each series.
pub fn summary(records: &[Measured]) -> Vec<SeriesFigures> {
    let line = |(name, samples): &(&str, Vec<&Measured>)| {
        let histogram = together(samples);
        let quantile = |share| histogram.quantile_ns(share);
        SeriesFigures {
            series: (*name).to_owned(),
            count: histogram.count(),
            min_ns: histogram.min_ns(),
            mode_ns: histogram.mode_ns(),
            p50_ns: quantile(0.5),
            p90_ns: quantile(0.9),
            p99_ns: quantile(0.99),
            p99_9_ns: quantile(0.999),
            max_ns: histogram.max_ns(),
            tail: estimate(samples).ok(),
        }
    };
    series(records).iter().map(line).collect()
}
