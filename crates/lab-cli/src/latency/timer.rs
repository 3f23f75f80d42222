//! `millstream-lab latency timer`: the latency of threads after their timers.

mod timerlat;

use super::late::LateArgs;
use super::{class, explain};
use crate::experiment::{Experiment, Unmeasured, in_rounds};
use crate::interrupt;
use crate::numbers::{allowed_cpus, one_of, seconds, seconds_or_0, whole, within};
use crate::output::{Report, note, now};
use crate::samples;
use millstream_cpu::CpuSet;
use millstream_cpu::alarm::Mechanism;
use millstream_cpu::sched::Class;
use millstream_lab::explain::TraceMonitor;
use millstream_lab::timer::{
    LowLatencyGuard, THREADS, TimerSamples, TimerSpec, TimerlatMonitor, measure,
};
use millstream_measure::Measured;
use millstream_measure::picture;
use millstream_stats::SharedHistogram;
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// Measures how late threads wake up after their timers, on each CPU, as cyclictest does.
///
/// A thread on each CPU sleeps until given times (deadlines). The latency is the time from a
/// deadline until the thread reads the clock. If the privileges allow it, the command locks its
/// memory and keeps the CPUs out of deep sleep states.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  sudo millstream-lab latency timer
  sudo millstream-lab latency timer --cpus 1 --class fifo:98 --interval 200us --duration 30
  millstream-lab latency timer --class other --via timerfd --histograms
  sudo millstream-lab latency timer --explain-above 300us       explains the late wake-ups
  sudo millstream-lab latency timer --cpus 1 --timerlat         beside the kernel's own tracer")]
pub struct Args {
    /// CPUs to measure, for example 0-3,8. The default is all CPUs that this process may use.
    #[arg(long, value_name = "CPUS")]
    cpus: Option<CpuSet>,

    /// How the threads sleep.
    #[arg(long, value_name = "VIA", default_value = "nanosleep",
          value_parser = one_of(&MECHANISMS))]
    via: Mechanism,

    /// Scheduling class of the threads: other, fifo:1 to fifo:99, rr:1 to rr:99. The default is
    /// fifo:80, or other if this user may not use fifo.
    #[arg(long, value_name = "CLASS")]
    class: Option<Class>,

    /// Time between two deadlines.
    #[arg(long, value_name = "TIME", default_value = "1ms", value_parser = seconds)]
    interval: f64,

    /// Number of deadlines on each CPU. The default is enough for 5 s.
    #[arg(long, value_name = "N", conflicts_with = "duration", value_parser = whole::<u64>(1..))]
    count: Option<u64>,

    /// Length of the measurement.
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = seconds)]
    duration: f64,

    /// Number of times to make the measurement.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = whole::<u32>(1..=100_000))]
    repeat: u32,

    #[command(flatten)]
    late: LateArgs,

    /// Run the kernel's tracer timerlat on the same CPUs at the same time and interval, and print
    /// its two parts beside the result: how late the timer's interrupt came, and how much later a
    /// thread of the kernel ran. Needs root and a kernel that has this tracer.
    #[arg(long)]
    timerlat: bool,

    /// Draw the distribution of each CPU.
    #[arg(long)]
    histograms: bool,

    /// Delay each wake-up on purpose, to test whether `lab compare` finds the change.
    #[arg(long, value_name = "TIME", default_value = "0", hide = true, value_parser = seconds_or_0)]
    handicap: f64,
}

/// The ways to sleep.
const MECHANISMS: [(&str, &str, Mechanism); 2] = [
    ("nanosleep", "With clock_nanosleep, until an absolute time", Mechanism::Nanosleep),
    ("timerfd", "With read() on a periodic timerfd", Mechanism::Timerfd),
];

crate::results! {
    also [samples::results],
    /// How late threads woke up.
    struct TimerResults {
        /// Each CPU, all rounds together.
        series: Vec<samples::SeriesFigures>,
        /// A record for each CPU and round.
        records: Vec<Measured>,
    }
}

/// Succeeds when every sample was taken.
pub fn run(args: Args) -> anyhow::Result<Report> {
    interrupt::install();
    let plan = args.plan()?;
    let quiet = LowLatencyGuard::begin();
    quiet.missing().iter().for_each(|missing| note(format_args!("millstream: {missing}")));
    let open = |us| TraceMonitor::open(&format!("{THREADS}*"), us * 1000, args.late.outliers);
    let above_us = args.late.above_us()?;
    let mut timers = Timers {
        guard: above_us.map(open).transpose()?,
        plan,
        above_us,
        timerlat: args.timerlat,
        so_far: Arc::default(),
    };
    let all = in_rounds(&mut timers, &[()], args.repeat as usize);
    let (plan, broken) = (timers.plan, all.broken());
    // What the tracer does not give is no reason to lose what was measured.
    let (mut records, mut kernels, mut failure) = (Vec::new(), Vec::new(), None);
    for WokenThreads { ours, traced } in all.outcomes() {
        records.extend(ours);
        match traced {
            Ok(traced) => kernels.extend(traced),
            Err(error) => failure = Some(error),
        }
    }
    let has_values = |record: &Measured| record.observed.histogram.count() > 0;
    records.retain(has_values);
    kernels.retain(has_values);
    anyhow::ensure!(
        !records.is_empty(),
        "{}",
        broken.as_deref().unwrap_or("interrupted before there was a result: run the command again")
    );
    let title = format!(
        "wake-ups every {} µs by {}, {}",
        (args.interval * 1e9).round() / 1e3,
        mechanism_name(plan.mechanism),
        plan.class
    );
    let mut text = samples::text(&title, &records, args.histograms);
    text += &explain::table::of_records(&records);
    if args.timerlat && failure.is_none() {
        match timerlat::text(&records, &kernels) {
            Ok(parts) => text += &parts,
            Err(error) => failure = Some(error.to_string()),
        }
    }
    records.append(&mut kernels);
    let series = samples::summary(&records);
    Ok(Report::of(text, &TimerResults { series, records }).failing(broken.or(failure)))
}

/// The measurement of wake-ups on all CPUs at once.
struct Timers {
    plan: TimerSpec,
    guard: Option<TraceMonitor>,
    above_us: Option<u64>,
    timerlat: bool,
    so_far: Arc<SharedHistogram<0>>,
}

/// What one round found: records of our threads, and of the kernel's, or why there are none.
struct WokenThreads {
    ours: Vec<Measured>,
    traced: Result<Vec<Measured>, String>,
}

impl Experiment for Timers {
    type Case = ();
    type Outcome = WokenThreads;

    fn name(&self, (): &()) -> String {
        "measuring wake-ups".to_owned()
    }

    fn expected(&self, (): &()) -> Option<Duration> {
        let all_s = self.plan.count as f64 * self.plan.interval_ns as f64 / 1e9;
        Some(Duration::try_from_secs_f64(all_s).unwrap_or(Duration::MAX))
    }

    fn so_far(&self) -> Box<dyn Fn() -> String + Send> {
        let so_far = Arc::clone(&self.so_far);
        Box::new(move || picture::line(&so_far))
    }

    fn step(&mut self, (): &(), _: usize) -> Result<WokenThreads, Unmeasured> {
        let (plan, started) = (&self.plan, now());
        let beside = self.timerlat.then(|| timerlat::start(plan)).transpose()?;
        let taken = measure(plan, self.guard.as_mut(), &self.so_far, interrupt::asked)?;
        let record = |taken| measured(plan, self.above_us, &started, taken);
        let ours = taken.into_iter().map(record).collect();
        let traced = match beside.map(TimerlatMonitor::end) {
            None => Ok(Vec::new()),
            Some(Ok(seen)) => Ok(timerlat::records(plan, seen, &started)),
            Some(Err(error)) => Err(error.to_string()),
        };
        Ok(WokenThreads { ours, traced })
    }
}

#[derive(Serialize)]
struct Parameters {
    cpu: usize,
    via: &'static str,
    class: String,
    interval_ns: u64,
    explain_above_us: Option<u64>,
    handicap_ns: Option<u64>,
}

impl Args {
    fn plan(&self) -> anyhow::Result<TimerSpec> {
        let allowed = allowed_cpus()?;
        let cpus = self.cpus.as_ref().unwrap_or(&allowed);
        anyhow::ensure!(
            !cpus.is_empty(),
            "--cpus contains no CPU; this process may use CPUs {allowed}"
        );
        within("--interval", (self.interval, " s"), 1e-6..=100.0, "1us to 100s")?;
        let interval_ns = (self.interval * 1e9).round();
        if self.timerlat {
            timerlat::check(interval_ns as u64)?;
        }
        let count = self.count.unwrap_or((self.duration * 1e9 / interval_ns).ceil() as u64);
        Ok(TimerSpec {
            cpus: cpus.iter().collect(),
            mechanism: self.via,
            class: class::chosen(self.class),
            interval_ns: interval_ns as u64,
            count,
            handicap_ns: (self.handicap * 1e9).round() as u64,
        })
    }
}

fn mechanism_name(mechanism: Mechanism) -> &'static str {
    match mechanism {
        Mechanism::Nanosleep => "clock_nanosleep",
        Mechanism::Timerfd => "timerfd",
    }
}

fn measured(
    plan: &TimerSpec,
    above_us: Option<u64>,
    started: &str,
    taken: TimerSamples,
) -> Measured {
    let parameters = Parameters {
        cpu: taken.cpu,
        via: mechanism_name(plan.mechanism),
        class: plan.class.to_string(),
        interval_ns: plan.interval_ns,
        explain_above_us: above_us,
        handicap_ns: (plan.handicap_ns > 0).then_some(plan.handicap_ns),
    };
    let mut counters = BTreeMap::from([("deadlines missed".to_owned(), taken.missed)]);
    counters.extend(above_us.map(|us| (format!("later than {us} us"), taken.late)));
    Measured {
        measurement: "timer".to_owned(),
        series: format!("cpu {}", taken.cpu),
        parameters: samples::entries(&parameters),
        started: started.to_owned(),
        seconds: taken.seconds,
        observed: taken.observed,
        counters,
        outliers: taken.outliers,
        ..Measured::default()
    }
}
