//! The figures of a report.

use super::view::{Group, ReportView};
use super::{HEIGHT, WIDTH};
use crate::picture::short_time;
use crate::record::Record;
use millstream_draw::{Alignment, Panel, SERIES, Scale, Sheet};
use millstream_stats::Histogram;
use std::collections::{BTreeMap, BTreeSet};

/// The bins of a histogram for a factor of ten.
const BINS_PER_DECADE: f64 = 24.0;
/// The upper left corner of a figure's frame.
const CORNER: (i32, i32) = (70, 50);
/// The size of the frame.
const FRAME: (u32, u32) = (WIDTH - 110, HEIGHT - 110);

/// From name to name of the lines.
const NAME_STEP: u32 = 14;

/// Returns the upper end of a logarithmic scale from `low` that keeps `high` below the names of so
/// many lines; at most 0.7 of the frame is theirs.
fn above(low: f64, high: f64, lines: usize) -> f64 {
    let names = NAME_STEP * (lines as u32 + 1);
    let share = f64::from(FRAME.1) / f64::from(FRAME.1 - names.min(FRAME.1 * 7 / 10));
    low * (high / low).powf(share)
}

/// A figure: its description in words, and its lines.
pub(super) struct Figure {
    pub title: String,
    x: Scale,
    y: Scale,
    lines: Vec<(String, Vec<(f64, f64)>)>,
    /// The side of the frame for the names of the lines.
    names: Alignment,
}

/// Returns all figures of a report.
pub(super) fn all(view: &ReportView<'_>) -> Vec<Figure> {
    let mut figures = Vec::new();
    // One set under several loads: the loads are compared.
    let by_load = beside_loads(view);
    if view.sets.len() > 1 || by_load.is_empty() {
        for title in &view.each(Record::title) {
            figures.extend(both(title, &view.groups(title)));
        }
    }
    figures.extend(by_load);
    figures.extend(under_traffic(view));
    figures
}

/// Draws distributions over each other, both axes logarithmic: rare values matter.
fn histogram(title: &str, histograms: Vec<(String, Histogram)>) -> Figure {
    let all = || histograms.iter().map(|(_, histogram)| histogram);
    let low = all().map(Histogram::min_ns).min().unwrap_or(0).max(1) as f64 / 1e3;
    let high = all().map(Histogram::max_ns).max().unwrap_or(0).max(1000) as f64 / 1e3;
    let factor = 10f64.powf(1.0 / BINS_PER_DECADE);
    let first = (low.ln() / factor.ln()).floor() as i32;
    let bins = ((high.ln() / factor.ln()).ceil() as i32 - first + 1).clamp(1, 1000) as usize;
    let edge = |bin: usize| factor.powi(first + bin as i32);
    let mut lines = Vec::new();
    let mut most = 1.0f64;
    for (label, histogram) in &histograms {
        let mut counts = vec![0u64; bins];
        for (upper_ns, count) in histogram.classes() {
            let at = ((upper_ns as f64 / 1e3).max(low).ln() / factor.ln()).floor() as i32 - first;
            counts[at.clamp(0, bins as i32 - 1) as usize] += count;
        }
        // Steps, which begin and end at zero; half a count lies below the lowest line.
        let mut steps = vec![(edge(0), 0.5)];
        for (bin, count) in counts.iter().enumerate() {
            let level = (*count as f64).max(0.5);
            steps.extend([(edge(bin), level), (edge(bin + 1), level)]);
        }
        steps.push((edge(bins), 0.5));
        most = most.max(counts.iter().copied().max().unwrap_or(1) as f64);
        let max = short_time(histogram.max_ns());
        lines.push((format!("{label} (max {max})"), steps));
    }
    Figure {
        title: format!("{title}: distribution"),
        x: Scale::logarithmic(low / factor, high * factor * factor, "time, µs"),
        y: Scale::logarithmic(0.5, above(0.5, most * 1.2, lines.len()), "how often"),
        lines,
        names: Alignment::Right,
    }
}

/// Draws the growth of the maximum; `None` when the order of time is not known.
fn creep(title: &str, groups: &[Group<'_>]) -> Option<Figure> {
    let known = |group: &&Group<'_>| {
        group.records.iter().all(|record| !record.measured.observed.new_maxima.is_empty())
    };
    let curves: Vec<_> = groups
        .iter()
        .filter(known)
        .map(|group| {
            let in_us = group.creep().into_iter().map(|(at_s, max_ns)| (at_s, max_ns / 1e3));
            (group.label.to_owned(), in_us.collect::<Vec<_>>())
        })
        .collect();
    let points = || curves.iter().flat_map(|(_, curve)| curve);
    let end_s = points().map(|point| point.0).fold(0.0, f64::max);
    let high = points().map(|point| point.1).fold(0.0, f64::max);
    let low = points().map(|point| point.1).filter(|y| *y > 0.0).fold(high, f64::min);
    (end_s > 0.0 && high > 0.0).then(|| Figure {
        title: format!("{title}: the maximum so far"),
        x: Scale::logarithmic((end_s / 1e4).max(1e-3), end_s, "measured time, s"),
        y: Scale::logarithmic(
            low * 0.9,
            above(low * 0.9, high * 1.1, curves.len()),
            "largest latency so far, µs",
        ),
        lines: curves,
        names: Alignment::Left,
    })
}

/// Draws the distribution and the maximum of several groups.
fn both(title: &str, groups: &[Group<'_>]) -> Vec<Figure> {
    let histograms = groups.iter().map(|group| (group.label.to_owned(), group.histogram()));
    let distribution = histogram(title, histograms.collect());
    std::iter::once(distribution).chain(creep(title, groups)).collect()
}

/// Draws all load profiles over each other, for each set and series that has several.
fn beside_loads(view: &ReportView<'_>) -> Vec<Figure> {
    let mut figures = Vec::new();
    for set in view.sets {
        let one = ReportView { sets: std::slice::from_ref(set), ..*view };
        let name_of = |record: &Record| match record.measured.series.as_str() {
            "" => record.name.clone(),
            series => format!("{}, {series}", record.name),
        };
        for name in one.each(name_of) {
            let mut loads: Vec<Group<'_>> = Vec::new();
            for record in set.records.iter().filter(|record| name_of(record) == name) {
                match loads.iter_mut().find(|group| group.label == record.load) {
                    Some(group) => group.records.push(record),
                    None => loads.push(Group { label: &record.load, records: vec![record] }),
                }
            }
            if loads.len() > 1 {
                figures.extend(both(&format!("{}: {name}, by load", set.label), &loads));
            }
        }
    }
    figures
}

/// Draws quantiles over the packets of load a second, for series measured under such load.
fn under_traffic(view: &ReportView<'_>) -> Option<Figure> {
    let load_of = |record: &Record| record.measured.parameters.get("load_pps")?.as_f64();
    let with_load: Vec<&Record> = view.records().filter(|r| load_of(r).is_some()).collect();
    let series = |record: &Record| match record.measured.parameters.get("row") {
        Some(row) => row.as_str().unwrap_or_default().to_owned(),
        None => record.measured.series.clone(),
    };
    let names: BTreeSet<String> = with_load.iter().map(|record| series(record)).collect();
    let mut lines = Vec::new();
    for name in names {
        for (label, share) in [("p50", 0.5), ("p99", 0.99), ("max", 1.0)] {
            let mut points: BTreeMap<u64, Histogram> = Default::default();
            for record in with_load.iter().filter(|record| series(record) == name) {
                let load = load_of(record).unwrap_or(0.0) as u64;
                points.entry(load).or_default().merge(&record.measured.observed.histogram);
            }
            let point = |(load, all): (u64, Histogram)| {
                (load.max(1) as f64, all.quantile_ns(share) as f64 / 1e3)
            };
            lines.push((format!("{name} {label}"), points.into_iter().map(point).collect()));
        }
    }
    let points = || lines.iter().flat_map(|(_, line): &(String, Vec<(f64, f64)>)| line);
    let span = |part: fn(&(f64, f64)) -> f64| {
        let values = || points().map(part);
        (values().fold(f64::INFINITY, f64::min), values().fold(0.0, f64::max))
    };
    let ((x_low, x_high), (y_low, y_high)) = (span(|p| p.0), span(|p| p.1));
    (x_high > x_low).then(|| Figure {
        title: "round trips beside traffic".to_owned(),
        x: Scale::logarithmic(x_low * 0.8, x_high * 1.25, "packets of load a second"),
        y: Scale::logarithmic(
            y_low * 0.8,
            above(y_low * 0.8, y_high, lines.len()),
            "round trip, µs",
        ),
        lines,
        names: Alignment::Left,
    })
}

impl Figure {
    /// Draws it `top` pixels below the sheet's upper edge.
    pub fn draw(&self, sheet: &mut dyn Sheet, top: i32) {
        let (left, frame_top) = (CORNER.0, CORNER.1 + top);
        let panel = Panel::new((left, frame_top), FRAME, self.x.clone(), self.y.clone());
        panel.frame(sheet, &self.title);
        let coloured = || self.lines.iter().zip(SERIES.into_iter().cycle());
        for ((_, line), colour) in coloured() {
            panel.curve(sheet, line, colour);
        }
        for (index, ((label, _), colour)) in coloured().enumerate() {
            let x = match self.names {
                Alignment::Left => left + 10,
                _ => left + FRAME.0 as i32 - 18,
            };
            let y = frame_top + NAME_STEP as i32 * (index as i32 + 1);
            sheet.name((x, y), self.names, colour, label);
        }
    }
}
