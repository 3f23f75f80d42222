//! The page: one file, without references to other files.

use std::fmt::Write;

use super::view::ReportView;
use super::{HEIGHT, WIDTH, figure, outliers, tables};
use crate::compare::SetOrder;
use millstream_cpu::{Environment, KernelOrigin};
use millstream_draw::{Svg, escape};
use millstream_stats::short_ratio;

const STYLE: &str = "
body { font: 16px/1.5 sans-serif; max-width: 1080px; margin: 2em auto; padding: 0 1em;
  color: #111; }
h1 { font-size: 1.6em; } h2 { font-size: 1.25em; margin-top: 2em; }
.wide { overflow-x: auto; } svg { max-width: 100%; height: auto; }
table { border-collapse: collapse; font-size: 0.85em; }
th, td { text-align: left; padding: 0.25em 0.7em; border-bottom: 1px solid #ddd;
  vertical-align: top; }
th { background: #f3f3f3; } td:not(:first-child):not(:last-child) { white-space: nowrap; }
th:last-child { min-width: 11em; } td:first-child { min-width: 9em; }
.key { border-left: 4px solid #0b6e99; padding: 0.5em 1em; background: #f2f8fa; }
.warn { border-left: 4px solid #c2571a; padding: 0.5em 1em; background: #fdf5f0; }
";

/// Returns the report as a page.
#[must_use]
pub fn html(view: &ReportView<'_>) -> String {
    let title = escape(view.title);
    let mut text = format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{title}</title><style>{STYLE}</style></head><body>\n<h1>{title}</h1>\n"
    );
    text += &summary(view);
    let _ = write!(text, "<h2>What was measured</h2>\n{}", tables::commands(view));
    text += "<h2>Latencies</h2>\n";
    text += &tables::latencies(view);
    if view.sets.len() > 1 {
        text += "<h2>Comparison of the sets</h2>\n<p>Each figure is the median over fresh \
             starts of the program (or boots), and the ratio to the base has its 95 % interval. A \
             change is reported if a permutation test of the starts finds it and it is \
             larger than 10 %. Without any real difference, one table in twenty shows a change. \
             The p value of a change is corrected for all tests of the table.</p>\n";
        text += &tables::comparisons(view.comparisons);
    }
    text += "<h2>Figures</h2>\n";
    for figure in figure::all(view) {
        let mut svg = Svg::new(WIDTH, HEIGHT);
        figure.draw(&mut svg, 0);
        let _ = writeln!(text, "<figure>{}</figure>", svg.element(&figure.title));
    }
    for (heading, table) in [
        ("Starts without a result", tables::failures(view)),
        ("Causes of outliers", outliers::table(view)),
        ("Parts of the latency", tables::stages(view)),
        ("Loads during the samples", tables::loads(view)),
        ("Published results of others", tables::references(view)),
    ] {
        if let Some(table) = table {
            let _ = write!(text, "<h2>{heading}</h2>\n{table}");
        }
    }
    text += READING;
    text += &machines(view);
    text + "</body></html>\n"
}

const READING: &str = "<h2>How to read this</h2>\n<ul>\
<li><b>Latency</b> is the time from an event (a timer's deadline, the sending of a packet, an \
interrupt) to the moment at which the program reacts to it.</li>\
<li>For real-time work only the <b>maximum</b> matters, and a longer measurement finds a larger \
one. The chart of the maximum so far shows whether it still grows. The table also predicts the \
maximum of ten times as many values (generalised extreme value distribution of block maxima, by \
L-moments; interval by parametric bootstrap): it lies in that interval in 95 of 100 cases, and \
above it in one of 40. The prediction cannot include events that did not occur.</li>\
<li><b>p99</b>: 99 of 100 values of a start are not above it. The tables show the median over the \
starts; the interval contains the median of many such starts with 95 %. The <b>mode</b> is the \
most frequent value.</li>\
<li>In charts of distributions both axes are logarithmic: a bar of height 1 is a single value. All \
values are shown.</li>\
<li>A <b>start</b> is a fresh start of the program. The order of all starts is random, so slow \
changes of the machine do not favour one set.</li></ul>\n";

/// Returns the subject in a few sentences.
fn summary(view: &ReportView<'_>) -> String {
    let values: u64 = view.records().map(|r| r.measured.observed.histogram.count()).sum();
    let seconds: f64 = view.records().map(|record| record.measured.seconds).sum();
    let labels: Vec<_> = view.sets.iter().map(|set| format!("“{}”", set.label)).collect();
    let begun = || view.records().map(|record| &*record.measured.started);
    let mut text = format!(
        "<p class=\"key\">{values} latencies from {} samples, measured for {:.0} s in all, begun \
         between {} and {}; sets: {}.</p>\n",
        view.records().count(),
        seconds,
        escape(begun().min().unwrap_or_default()),
        escape(begun().max().unwrap_or_default()),
        escape(&labels.join(", "))
    );
    for line in findings(view) {
        let _ = writeln!(text, "<p class=\"key\">{}</p>", escape(&line));
    }
    for line in warnings(view) {
        let _ = writeln!(text, "<p class=\"warn\">{}</p>", escape(&line));
    }
    text
}

fn findings(view: &ReportView<'_>) -> Vec<String> {
    if view.sets.len() < 2 {
        return Vec::new();
    }
    let mut lines = Vec::new();
    for comparison in view.comparisons {
        for change in &comparison.changes {
            let side = &comparison.sides[change.at].label;
            let word = if change.ratio > 1.0 { "slower" } else { "faster" };
            let (figure, title) = (comparison.figure, &comparison.title);
            let ratio = short_ratio(change.ratio);
            lines.push(match comparison.order {
                SetOrder::Time => format!(
                    "From “{side}” on, the {figure} of {title} is {word}: {ratio} times what it \
                     was before."
                ),
                SetOrder::Base => format!(
                    "With “{side}”, the {figure} of {title} is {word} than with “{}”: {ratio} \
                     times.",
                    comparison.sides[0].label
                ),
            });
        }
    }
    if lines.is_empty() {
        let few = view.comparisons.iter().flat_map(|one| &one.sides).any(|side| side.too_few);
        let text = if few {
            "No change was found, but some sets have too few starts to prove one."
        } else {
            "No change was found between the sets."
        };
        lines.push(text.to_owned());
    }
    lines
}

/// Returns the limits of the conclusions.
fn warnings(view: &ReportView<'_>) -> Vec<String> {
    let mut lines = Vec::new();
    let any = |test: fn(&Environment) -> bool| view.records().any(|r| test(&r.environment));
    let emulated = |environment: &Environment| {
        environment.cpu_model.as_deref().is_some_and(|model| model.contains("QEMU TCG"))
    };
    if any(emulated) {
        lines.push(
            "Some of this was measured in software emulation (QEMU TCG): it shows which kernel is \
             slower, but its times say nothing about real processors."
                .to_owned(),
        );
    } else if any(|environment| environment.hypervisor) {
        lines.push(
            "This was measured in a virtual machine: the hypervisor may have caused the largest \
             latencies. Compare ratios within a run, and not maxima with other machines."
                .to_owned(),
        );
    }
    let handicapped =
        view.records().any(|record| record.measured.parameters.contains_key("handicap_ns"));
    if !view.failures.is_empty() {
        let count = view.failures.len();
        lines.push(format!("Planned starts are missing, because they gave no result: {count}."));
    }
    if handicapped {
        lines.push(
            "Some samples were delayed on purpose, to test whether this is found.".to_owned(),
        );
    }
    lines
}

/// Lists the machines, each once.
fn machines(view: &ReportView<'_>) -> String {
    let mut text = "<h2>Where it was measured</h2>\n".to_owned();
    let mut shown: Vec<Vec<Vec<String>>> = Vec::new();
    for (set, record) in view.labelled() {
        let rows = describe(&record.environment);
        if !shown.contains(&rows) {
            let _ = writeln!(text, "<h3>{}</h3>", escape(set));
            text += &tables::table(&["", ""], &rows);
            shown.push(rows);
        }
    }
    text
}

fn describe(environment: &Environment) -> Vec<Vec<String>> {
    let Environment { caches, mitigations, nics, .. } = environment;
    let or_unknown = |fact: &Option<String>| fact.clone().unwrap_or_else(|| "unknown".to_owned());
    let caches: Vec<_> = caches
        .iter()
        .map(|cache| format!("L{} {} KiB", cache.level, cache.size_bytes / 1024))
        .collect();
    let mitigations: Vec<_> =
        mitigations.iter().map(|(name, state)| format!("{name}: {state}")).collect();
    let nics: Vec<_> = nics
        .iter()
        .map(|nic| {
            let waits = nic.coalescing.map_or(String::new(), |wait| {
                let adaptive = if wait.adaptive_rx { ", adaptive" } else { "" };
                format!(
                    ", interrupt after {} µs or {} frames{adaptive}",
                    wait.rx_usecs, wait.rx_frames
                )
            });
            format!("{} ({}{waits})", nic.name, nic.driver.as_deref().unwrap_or("no driver"))
        })
        .collect();
    let rows = [
        ("kernel", or_unknown(&environment.kernel_release)),
        ("build", or_unknown(&environment.kernel_version)),
        ("preemption", or_unknown(&environment.preemption)),
        ("command line", or_unknown(&environment.kernel_command_line)),
        (
            "configuration",
            environment.kernel_config_hash.clone().unwrap_or_else(|| {
                "unknown: no /proc/config.gz and no /boot/config-RELEASE there".to_owned()
            }),
        ),
        ("kernel's package", origin(environment.kernel_origin.as_ref())),
        ("processor", or_unknown(&environment.cpu_model)),
        ("microcode", or_unknown(&environment.microcode)),
        (
            "CPUs",
            format!(
                "{} ({} cores, {} NUMA nodes), isolated: {}",
                environment.cpus_online,
                environment.physical_cores,
                environment.numa_nodes,
                environment.cpus_isolated
            ),
        ),
        ("caches", caches.join(", ")),
        ("governor", or_unknown(&environment.governor)),
        ("clock source", or_unknown(&environment.clock_source)),
        ("mitigations", mitigations.join("; ")),
        ("network devices", nics.join(", ")),
        ("millstream", environment.millstream_version.clone()),
    ];
    rows.into_iter().map(|(name, value)| vec![name.to_owned(), value]).collect()
}

/// The package of a kernel, and what tells its files from others.
fn origin(origin: Option<&KernelOrigin>) -> String {
    let Some(origin) = origin else { return "unknown".to_owned() };
    let words = [&origin.package, &origin.version].map(|word| word.as_deref());
    let hashes = [("package", &origin.package_sha256), ("image", &origin.image_sha256)];
    let hashes = hashes
        .into_iter()
        .filter_map(|(of, hash)| Some(format!("SHA-256 of the {of} {}", hash.as_ref()?)));
    let words = words.into_iter().flatten().collect::<Vec<_>>().join(" ");
    [words]
        .into_iter()
        .filter(|words| !words.is_empty())
        .chain(hashes)
        .collect::<Vec<_>>()
        .join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::{ChangeRule, Set, compare};
    use crate::record::tests::record;

    fn set(label: &str, base_ns: u64) -> Set {
        let one = |restart| {
            let values: Vec<u64> = (0..100).map(|n| base_ns + n * 10).collect();
            crate::Record { restart, ..record("timer", &values) }
        };
        Set { label: label.to_owned(), records: (0..6).map(one).collect() }
    }

    #[test]
    fn the_page_is_whole_stands_alone_and_says_what_was_found() {
        let sets = [set("kernel <old>", 20_000), set("kernel new", 220_000)];
        let comparisons = compare(&sets, &ChangeRule::default());
        let references = crate::reference::builtin();
        let reason = "the guest said <nothing>".to_owned();
        let variant = "kernel bad".to_owned();
        let failures = [crate::Failure { variant, reason, ..crate::Failure::default() }];
        let view = ReportView {
            title: "A & B",
            sets: &sets,
            comparisons: &comparisons,
            references: &references,
            failures: &failures,
        };
        let page = html(&view);
        for part in [
            "<title>A &amp; B</title>",
            "kernel &lt;old&gt;",
            "With “kernel new”, the p50 of timer, cpu 1 | idle is slower than with",
            "with “kernel &lt;old&gt;”: 10",
            "cyclictest, Cortex-A53",
            "the maximum so far",
            "because they gave no result: 1.",
            "the guest said &lt;nothing&gt;",
            "</html>",
        ] {
            assert!(page.contains(part), "no {part:?}");
        }
        assert!(!page.contains("<old>") && !page.contains("src=") && !page.contains("href="));
        let mut file = Vec::new();
        super::super::png(&view).write_png(&mut file).unwrap();
        assert!(file.starts_with(b"\x89PNG"));
    }
}
