//! What is known of each figure of a run so far.

use std::collections::BTreeMap;

use serde::Serialize;

use super::plan::Plan;
use super::variance::{Precision, Spread};
use crate::Summary;
use crate::record::{Measured, Record};

/// What is known of a cell's series.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Line {
    /// Variant; may be empty.
    pub variant: String,
    /// Measurement, series and load.
    pub title: String,
    /// The plan's quantile: over starts, nanoseconds.
    pub figure_ns: f64,
    /// Half of its 95 % interval as a share; none with one start.
    pub half_width: Option<f64>,
    /// Spread within and between starts.
    pub spread: Spread,
    /// The largest of all samples' maxima, nanoseconds.
    pub max_ns: u64,
    #[serde(skip)]
    starts: BTreeMap<u32, Vec<f64>>,
}

/// The figures of all cells.
#[derive(Default)]
pub(super) struct Book(BTreeMap<(String, String), Line>);

impl Book {
    pub(super) fn add(&mut self, plan: &Plan, records: &[Record]) {
        for record in records {
            let key = (record.title(), record.variant.clone());
            let line = self.0.entry(key).or_insert_with(|| Line {
                variant: record.variant.clone(),
                title: record.title(),
                figure_ns: 0.0,
                half_width: None,
                spread: Spread { within: None, between: None },
                max_ns: 0,
                starts: BTreeMap::new(),
            });
            let Measured { observed, .. } = &record.measured;
            let figure = observed.histogram.quantile_ns(plan.quantile) as f64;
            line.starts.entry(record.restart).or_default().push(figure);
            line.max_ns = line.max_ns.max(observed.histogram.max_ns());
            line.settle();
        }
    }

    pub(super) fn is_precise(&self, precision: f64) -> bool {
        let known = |line: &Line| line.half_width.is_some_and(|half| half <= precision);
        self.0.values().all(known)
    }

    pub(super) fn lines(self) -> Vec<Line> {
        self.0.into_values().collect()
    }
}

impl Line {
    fn settle(&mut self) {
        let starts: Vec<Vec<f64>> = self.starts.values().cloned().collect();
        let middle = |start: &Vec<f64>| Some(Summary::of(start)?.median);
        let figures: Vec<f64> = starts.iter().filter_map(middle).collect();
        let precision = Precision::of(&figures);
        self.figure_ns = precision.map_or(0.0, |precision| precision.figure);
        self.half_width = precision.map(|known| known.half_width).filter(|half| half.is_finite());
        self.spread = Spread::of(&starts);
    }
}
