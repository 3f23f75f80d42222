//! The tables of a report.

use std::fmt::Write;

use super::view::ReportView;
use crate::Failure;
use crate::compare::{Comparison, SetOrder};
use crate::design::VarianceShares;
use crate::extreme::Estimate;
use crate::observed::BlockMaxima;
use crate::picture::short_time;
use crate::record::{Record, each_once};
use crate::statistics::{by_start, figures};
use millstream_draw::escape;
use millstream_stats::short_ratio;
use millstream_stats::{Histogram, Summary};
use millstream_stats::{LEVEL, MedianEstimate};

/// Formats a table of text cells; the first column is a heading.
pub(super) fn table(head: &[&str], rows: &[Vec<String>]) -> String {
    let mut text = "<div class=\"wide\"><table><tr>".to_owned();
    for cell in head {
        let _ = write!(text, "<th>{}</th>", escape(cell));
    }
    text += "</tr>\n";
    for row in rows {
        text += "<tr>";
        for cell in row {
            let _ = write!(text, "<td>{}</td>", escape(cell));
        }
        text += "</tr>\n";
    }
    text + "</table></div>\n"
}

/// Lists the command lines by measurement and set; equal samples once.
pub(super) fn commands(view: &ReportView<'_>) -> String {
    let row = |(set, record): (&str, &Record)| {
        let command = match record.command.join(" ") {
            none if none.is_empty() => "not recorded".to_owned(),
            command => command,
        };
        let way = record.measured.topology.clone();
        vec![record.name.clone(), set.to_owned(), way, command]
    };
    let rows = each_once(view.labelled().map(row));
    table(&["measurement", "set", "way of packets", "command"], &rows)
}

/// Lists the starts without a record.
pub(super) fn failures(view: &ReportView<'_>) -> Option<String> {
    let row = |one: &Failure| {
        let (start, tries) = ((one.restart + 1).to_string(), one.tries.to_string());
        let what = format!("{} | {}", one.name, one.load);
        vec![what, one.variant.clone(), start, tries, one.reason.clone()]
    };
    let rows: Vec<_> = view.failures.iter().map(row).collect();
    let head = ["measurement | load", "set", "start", "tries", "reason"];
    (!rows.is_empty()).then(|| table(&head, &rows))
}

/// Lists each title and set: quantiles, the maximum, the expected largest, spreads.
pub(super) fn latencies(view: &ReportView<'_>) -> String {
    let mut rows = Vec::new();
    for title in view.each(Record::title) {
        for group in view.groups(&title) {
            let histogram = group.histogram();
            let starts = by_start(group.records.iter().copied());
            let time = |quantile| {
                MedianEstimate::of(&figures(&starts, quantile), LEVEL)
                    .map_or("–".to_owned(), |known| short_time(known.figure as u64))
            };
            let mut row = vec![title.clone(), group.label.to_owned()];
            row.extend([histogram.count(), starts.len() as u64].map(|count| count.to_string()));
            row.extend([short_time(histogram.mode_ns()), time(0.5), time(0.99)]);
            row.push(interval(&starts, 0.99));
            row.extend([time(0.999), short_time(histogram.max_ns())]);
            row.push(expected(&group.records));
            row.push(spreads(&group.records));
            rows.push(row);
        }
    }
    let head = [
        "measurement | load",
        "set",
        "values",
        "starts",
        "mode",
        "p50",
        "p99",
        "p99 lies between (95 %)",
        "p99.9",
        "max",
        "predicted max of ten times as many values (95 %)",
        "p99: variation within starts, between starts",
    ];
    table(&head, &rows)
}

/// Returns the estimate from all samples together.
fn expected(records: &[&Record]) -> String {
    let observed = || records.iter().map(|record| &record.measured.observed);
    let blocks: Vec<&BlockMaxima> = observed().map(|one| &one.blocks).collect();
    let values: u64 = observed().map(|one| one.histogram.count()).sum();
    match Estimate::of_samples(&blocks, values * 10, 1) {
        Ok(found) if found.shape > 0.5 => "no bound: the tail is too heavy".to_owned(),
        Ok(found) => found.between(),
        Err(why) => format!("no estimate: {why}"),
    }
}

/// Returns the interval of the median over starts.
fn interval(starts: &[Histogram], quantile: f64) -> String {
    let known = MedianEstimate::of(&figures(starts, quantile), LEVEL);
    known.and_then(|known| known.interval).map_or("more starts".to_owned(), |(low, high)| {
        format!("{} and {}", short_time(low as u64), short_time(high as u64))
    })
}

fn spreads(records: &[&Record]) -> String {
    let mut starts = std::collections::BTreeMap::<_, Vec<f64>>::new();
    for record in records {
        let figure = record.measured.observed.histogram.quantile_ns(0.99) as f64;
        starts.entry((&record.run, record.restart)).or_default().push(figure);
    }
    let starts: Vec<_> = starts.into_values().collect();
    let spread = VarianceShares::of(&starts);
    let share = |share: Option<f64>| {
        share.map_or("–".to_owned(), |share| format!("{:.0} %", share * 100.0))
    };
    format!("{}, {}", share(spread.within), share(spread.between))
}

/// Lists the comparisons and their changes.
pub(super) fn comparisons(comparisons: &[Comparison]) -> String {
    let mut rows = Vec::new();
    for comparison in comparisons {
        for (index, side) in comparison.sides.iter().enumerate() {
            let change = comparison.changes.iter().find(|change| change.at == index);
            let verdict = match change {
                Some(change) if comparison.order == SetOrder::Time => {
                    format!("CHANGE here: × {} (p {:.3})", short_ratio(change.ratio), change.p)
                }
                Some(change) => format!("CHANGE (p {:.3})", change.p),
                None if index == 0 || side.ratio.is_none() => String::new(),
                None if side.too_few => "too few starts to tell".to_owned(),
                None => "no change".to_owned(),
            };
            rows.push(vec![
                comparison.title.clone(),
                comparison.figure.to_owned(),
                side.label.clone(),
                side.starts.to_string(),
                if side.starts > 0 { short_time(side.figure_ns as u64) } else { "–".to_owned() },
                side.beside_base(index),
                verdict,
            ]);
        }
    }
    let head = [
        "measurement | load",
        "figure",
        "set",
        "starts",
        "median",
        "ratio to the first set (95 %)",
        "verdict",
    ];
    table(&head, &rows)
}

/// Lists the parts of latencies that were measured separately.
pub(super) fn stages(view: &ReportView<'_>) -> Option<String> {
    let mut rows = Vec::new();
    for title in view.each(Record::title) {
        for group in view.groups(&title) {
            let mut total_ns = 0;
            for (index, stage) in group.records[0].measured.stages.iter().enumerate() {
                let mut all = millstream_stats::Histogram::default();
                let of_record = |record: &&&Record| record.measured.stages.get(index).is_some();
                for record in group.records.iter().filter(of_record) {
                    all.merge(&record.measured.stages[index].histogram);
                    total_ns += record.measured.stages[index].total_ns;
                }
                let time = |share| short_time(all.quantile_ns(share));
                let row = [title.clone(), group.label.to_owned(), stage.name.clone()];
                let times = [time(0.5), time(0.99), short_time(all.max_ns())];
                rows.push(row.into_iter().chain(times).collect());
            }
            let details = group.records.iter().map(|record| &record.measured.details);
            let whole: u64 = details.filter_map(|all| all.get("total_ns")?.as_u64()).sum();
            if total_ns > 0 {
                let sum = format!("sum of all stages {}", short_time(total_ns));
                let whole = format!("sum of whole latencies {}", short_time(whole));
                let row = [title.clone(), group.label.to_owned(), "sum".to_owned(), sum, whole];
                rows.push(row.into_iter().chain([String::new()]).collect());
            }
        }
    }
    let head = ["measurement | load", "set", "stage", "p50", "p99", "max"];
    (!rows.is_empty()).then(|| table(&head, &rows))
}

/// Lists the observed activity of the loads.
pub(super) fn loads(view: &ReportView<'_>) -> Option<String> {
    let mut rows = Vec::new();
    for load in view.each(|record| record.load.clone()) {
        let seen: Vec<_> = view
            .records()
            .filter(|record| record.load == load)
            .filter_map(|record| record.load_seen.as_ref())
            .collect();
        let middle = |figures: Vec<f64>| Summary::of(&figures).map_or(0.0, |all| all.median);
        if seen.is_empty() {
            continue;
        }
        let of = |figure: fn(&crate::record::LoadSeen) -> f64| {
            middle(seen.iter().map(|seen| figure(seen)).collect())
        };
        let work: Vec<String> =
            seen[0].work_per_s.iter().map(|(name, rate)| format!("{name}: {rate:.0}/s")).collect();
        rows.push(vec![
            load,
            format!("{:.0} %", of(|seen| seen.cpu_share) * 100.0),
            format!("{:.0}", of(|seen| seen.interrupts_per_s)),
            format!("{:.0}", of(|seen| seen.switches_per_s)),
            format!("{:.1}", of(|seen| seen.load_average)),
            format!("{:.1} %", of(|seen| seen.steal_share) * 100.0),
            work.join("; "),
        ]);
    }
    let head = [
        "load",
        "CPU time of the load",
        "interrupts/s",
        "switches/s",
        "load average",
        "stolen by the hypervisor",
        "work of the load",
    ];
    (!rows.is_empty()).then(|| table(&head, &rows))
}

/// Lists the published figures of other projects.
pub(super) fn references(view: &ReportView<'_>) -> Option<String> {
    let measured = view.each(|record| record.measured.measurement.clone());
    let rows: Vec<Vec<String>> = view
        .references
        .iter()
        .filter(|reference| measured.contains(&reference.measurement))
        .map(|reference| {
            let us = |us: f64| format!("{us} µs");
            vec![
                reference.name.clone(),
                reference.mode_us.map_or("–".to_owned(), us),
                us(reference.max_us),
                reference.source.clone(),
            ]
        })
        .collect();
    let head = ["what and where", "mode", "max", "source"];
    (!rows.is_empty()).then(|| table(&head, &rows))
}
