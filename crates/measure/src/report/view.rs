//! The contents of a report, sorted.

use crate::Failure;
use crate::compare::{Comparison, Set};
use crate::record::{Record, each_once};
use crate::reference::Reference;
use millstream_stats::Histogram;

/// The input of a report.
#[derive(Debug, Clone, Copy)]
pub struct ReportView<'v> {
    /// Its title.
    pub title: &'v str,
    /// The compared sets.
    pub sets: &'v [Set],
    /// The results of the comparison.
    pub comparisons: &'v [Comparison],
    /// The published figures of other projects.
    pub references: &'v [Reference],
    /// Starts without a result.
    pub failures: &'v [Failure],
}

/// The records of one title in one set.
#[derive(Debug, Clone)]
pub(super) struct Group<'v> {
    pub label: &'v str,
    pub records: Vec<&'v Record>,
}

impl Group<'_> {
    pub fn histogram(&self) -> Histogram {
        let mut all = Histogram::default();
        self.records.iter().for_each(|record| all.merge(&record.measured.observed.histogram));
        all
    }

    /// Returns the maximum so far over all samples, one after the other: seconds, nanoseconds.
    pub fn creep(&self) -> Vec<(f64, f64)> {
        let mut sorted = self.records.clone();
        sorted.sort_by_key(|record| (record.restart, record.sample));
        let (mut steps, mut before_s, mut max_ns) = (Vec::new(), 0.0, 0);
        for record in sorted {
            for new in &record.measured.observed.new_maxima {
                if new.value_ns > max_ns {
                    let at_s = before_s + new.at_ns as f64 / 1e9;
                    steps.extend([(at_s, max_ns as f64), (at_s, new.value_ns as f64)]);
                    max_ns = new.value_ns;
                }
            }
            before_s += record.measured.seconds;
        }
        steps.push((before_s, max_ns as f64));
        // The step up from zero does not count.
        steps.remove(0);
        steps
    }
}

impl<'v> ReportView<'v> {
    /// Returns all records.
    pub(super) fn records(&self) -> impl Iterator<Item = &'v Record> {
        self.sets.iter().flat_map(|set| &set.records)
    }

    /// Returns all records, each with the label of its set.
    pub(super) fn labelled(&self) -> impl Iterator<Item = (&'v str, &'v Record)> {
        self.sets.iter().flat_map(|set| set.records.iter().map(|record| (&*set.label, record)))
    }

    /// Returns the values of `key` for the records, each once, in their order.
    pub(super) fn each(&self, key: impl Fn(&Record) -> String) -> Vec<String> {
        each_once(self.records().map(key))
    }

    /// Returns the records of a title by set; sets without any are left out.
    pub(super) fn groups(&self, title: &str) -> Vec<Group<'v>> {
        let of_set = |set: &'v Set| Group {
            label: &set.label,
            records: set.records.iter().filter(|record| record.title() == title).collect(),
        };
        let groups = self.sets.iter().map(of_set);
        groups.filter(|group| !group.records.is_empty()).collect()
    }
}
