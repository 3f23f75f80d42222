//! The kernel's tracer timerlat beside our threads.

use crate::samples;
use millstream_host::trace::{TIMERLAT_PERIODS_US, TraceError};
use millstream_lab::timer::{TimerSpec, TimerlatFound, TimerlatMonitor, TimerlatSamples};
use millstream_measure::Measured;
use millstream_measure::picture::short_time;
use millstream_stats::Histogram;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write;

/// Rejects an interval that the tracer does not have.
pub fn check(interval_ns: u64) -> anyhow::Result<()> {
    let (us, rest) = (interval_ns / 1000, interval_ns % 1000);
    anyhow::ensure!(
        rest == 0 && TIMERLAT_PERIODS_US.contains(&us),
        "--timerlat: the kernel's tracer has no interval of {} µs: give --interval whole \
         microseconds from {} to {}",
        interval_ns as f64 / 1e3,
        TIMERLAT_PERIODS_US.start(),
        TIMERLAT_PERIODS_US.end()
    );
    Ok(())
}

/// Starts it for a measurement.
pub fn start(plan: &TimerSpec) -> Result<TimerlatMonitor, TraceError> {
    TimerlatMonitor::start(&plan.cpus.iter().copied().collect(), plan.interval_ns / 1000)
}

/// Returns a record for each CPU.
pub fn records(plan: &TimerSpec, found: TimerlatFound, started: &str) -> Vec<Measured> {
    let TimerlatFound { cpus, lost, malformed } = found;
    let record = |seen: TimerlatSamples| Measured {
        measurement: "timerlat".to_owned(),
        series: beside(&format!("cpu {}", seen.cpu)),
        parameters: samples::entries(&Parameters {
            cpu: seen.cpu,
            via: "timerlat",
            interval_ns: plan.interval_ns,
            beside: plan.class.to_string(),
        }),
        started: started.to_owned(),
        seconds: seen.seconds,
        observed: seen.observed,
        counters: BTreeMap::from([
            ("timerlat: events lost, all CPUs".to_owned(), lost),
            ("timerlat: lines not understood, all CPUs".to_owned(), malformed),
            ("timerlat: one line of two".to_owned(), seen.unpaired),
        ]),
        stages: seen.stages,
        ..Measured::default()
    };
    cpus.into_iter().map(record).collect()
}

#[derive(Serialize)]
struct Parameters {
    cpu: usize,
    via: &'static str,
    interval_ns: u64,
    beside: String,
}

/// The tracer's parts, and where our thread differs.
pub fn text(records: &[Measured], kernels: &[Measured]) -> anyhow::Result<String> {
    anyhow::ensure!(
        !kernels.is_empty(),
        "the kernel's tracer timerlat recorded nothing: measure for longer (--duration), and see \
         whether another program uses it (/sys/kernel/tracing/current_tracer)"
    );
    let mut text =
        "\nthe kernel's timerlat at the same time (its threads have fifo:95)\n".to_owned();
    let ours = samples::series(records);
    for (name, all) in samples::series(kernels) {
        text += &samples::parts(name, &all);
        text += &samples::troubles(&all);
        let Some((own, ours)) = ours.iter().find(|(own, _)| beside(own) == name) else {
            continue;
        };
        let median = |histogram: &Histogram| histogram.quantile_ns(0.5);
        let part = |at: usize| short_time(median(&samples::part(&all, at)));
        let [ours_ns, kernel_ns] = [ours, &all].map(|all| median(&samples::together(all)));
        let apart = short_time(ours_ns.abs_diff(kernel_ns));
        let than = if ours_ns < kernel_ns { "before" } else { "after" };
        let _ = writeln!(
            text,
            "{own}: at the median the interrupt came {} after the timer's time, the kernel's \
             thread ran {} after\nthe interrupt, and our thread {apart} {than} the kernel's",
            part(0),
            part(1)
        );
    }
    Ok(text)
}

/// The tracer's series beside one of ours, `cpu 1`.
fn beside(own: &str) -> String {
    format!("{own}, timerlat")
}
