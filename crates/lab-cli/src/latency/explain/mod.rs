//! `millstream-lab latency explain`: explains why a thread was late.

pub(super) mod table;

use super::late::explained_us;
use crate::experiment::report;
use crate::live::{Steps, during};
use crate::numbers::{cpu, seconds, whole, within};
use crate::{
    interrupt,
    output::{Join, Report},
    program,
};
use anyhow::{Context, bail};
use millstream_cpu::sched::Class;
use millstream_lab::explain::observer::WatchSpec;
use millstream_lab::explain::trials::{self, CauseTrial, Injection};
use millstream_lab::explain::{WatchedThread, flood, observer};
use millstream_measure::explained::Explanation;
use serde::Serialize;
use serde_json::Value;
use std::io::{BufReader, stdin, stdout};
use std::process::Command;
use std::time::{Duration, Instant};

/// Runs a thread that sleeps until given times, and explains why it wakes up late. Needs root.
///
/// The command records the kernel's trace events. From them it finds what used the time between the
/// planned wake-up and the real one: an interrupt, the work after an interrupt, another thread, the
/// hypervisor, a page fault, or a signal that stopped the thread.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  sudo millstream-lab latency explain --cpu 1 --explain-above 500us --outliers 5
  sudo millstream-lab latency explain --check     causes made on purpose must be named")]
pub struct Args {
    /// CPU of the thread. The default is the last CPU that this process may use.
    #[arg(long, value_name = "CPU", value_parser = cpu)]
    cpu: Option<usize>,

    /// Scheduling class of the thread: other, or fifo:1 to fifo:99.
    #[arg(long, value_name = "CLASS", default_value = "fifo:90")]
    class: Class,

    /// Time between two planned wake-ups, 50us to 1s.
    #[arg(long, value_name = "TIME", default_value = "500us", value_parser = seconds)]
    interval: f64,

    /// Explain wake-ups that are later than this, 1us to 10s.
    #[arg(long, value_name = "TIME", default_value = "1ms", value_parser = seconds)]
    explain_above: f64,

    /// Number of late wake-ups to explain.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = whole::<u32>(..))]
    outliers: u32,

    /// How long to wait for late wake-ups.
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = seconds)]
    duration: f64,

    /// Test the command: cause delays on purpose (a real-time thread, a flood of packets, page
    /// faults, a stop, nothing), and fail if a cause is recognised in fewer than 9 of 10 trials.
    #[arg(long)]
    check: bool,

    /// Number of trials for each cause.
    #[arg(long, value_name = "N", default_value_t = 10, requires = "check",
          value_parser = whole::<u32>(..))]
    repeat: u32,

    /// Job of a helper process; for internal use.
    #[arg(long, hide = true, value_name = "JSON")]
    watched: Option<String>,

    /// Job of a helper process; for internal use.
    #[arg(long, hide = true, num_args = 2, value_names = ["FROM", "ONTO"],
          value_parser = whole::<usize>(..))]
    flood: Option<Vec<usize>>,
}

/// Succeeds when it could watch; with `--check`, when every cause was named often enough.
pub fn run(args: Args) -> anyhow::Result<Report> {
    if let Some(plan) = &args.watched {
        let plan = serde_json::from_str(plan)
            .context("the JSON of the internal option --watched is not valid")?;
        observer::watch(&plan, BufReader::new(stdin()), &mut stdout())?;
        return Ok(Report::done(String::new(), Value::Null));
    }
    if let Some([from, onto]) = args.flood.as_deref() {
        if let Err(error) = flood::serve(*from, *onto, BufReader::new(stdin()), &mut stdout()) {
            // The other process reports it.
            println!("{error}");
        }
        return Ok(Report::done(String::new(), Value::Null));
    }
    let allowed = millstream_cpu::thread::allowed_cpus()?;
    let cpu = args
        .cpu
        .or_else(|| allowed.iter().last())
        .context("this process may not use any CPU: check its CPU affinity (`taskset -p`)")?;
    within("--interval", (args.interval, " s"), 50e-6..=1.0, "50us to 1s")?;
    let interval_us = (args.interval * 1e6).round() as u64;
    let late_us = explained_us("--explain-above", args.explain_above)?;
    let watch = WatchSpec {
        cpu,
        class: args.class.to_string(),
        interval_ns: interval_us * 1000,
        threshold_ns: late_us * 1000,
    };
    // The ring is removed only at an orderly end, or at the next start.
    interrupt::install();
    let mut lookout = WatchedThread::open(&watch, start_watched)?;
    match args.check {
        true => check(&args, cpu, late_us, &mut lookout),
        false => look_out(&args, cpu, late_us, &mut lookout),
    }
}

fn look_out(
    args: &Args,
    cpu: usize,
    late: u64,
    lookout: &mut WatchedThread,
) -> anyhow::Result<Report> {
    let start = Instant::now();
    let end = Duration::from_secs_f64(args.duration);
    let mut found: Vec<Explanation> = Vec::new();
    during("watching for late answers", Some(end), || -> anyhow::Result<()> {
        while (found.len() as u32) < args.outliers && start.elapsed() < end && !interrupt::asked() {
            lookout.arm()?;
            // In steps, so that it can be ended.
            let step = Duration::from_secs(1).min(end.saturating_sub(start.elapsed()));
            found.extend(lookout.wait(step)?);
        }
        Ok(())
    })?;
    let mut text = format!(
        "{} on CPU {cpu}, every {} us: {} answers later than {late} us in {:.1} s\n",
        args.class,
        args.interval * 1e6,
        found.len(),
        start.elapsed().as_secs_f64()
    );
    text.extend(found.iter().map(table::explanation));
    report(text, &Watched { cpu, threshold_us: late, outliers: &found }, None)
}

#[derive(Serialize)]
struct Watched<'a> {
    cpu: usize,
    threshold_us: u64,
    outliers: &'a [Explanation],
}

fn check(
    args: &Args,
    cpu: usize,
    late: u64,
    lookout: &mut WatchedThread,
) -> anyhow::Result<Report> {
    if args.repeat == 0 {
        bail!("--repeat is 0: give 1 or more trials");
    }
    let mut steps = Steps::new(Injection::ALL.len() * args.repeat as usize);
    let done = trials::play(lookout, cpu, args.repeat, start_flood, |trial| {
        steps.next(|| trial.injected.name().to_owned());
        !interrupt::asked()
    })?;
    steps.end();
    interrupt::check("all trials were done")?;
    let short = |kind: &Injection| {
        let of_kind = done.iter().filter(|trial| trial.injected == *kind);
        let right = of_kind.clone().filter(|trial| trial.right).count();
        right * 10 < of_kind.count() * 9
    };
    let missed = Injection::ALL.iter().filter(|kind| short(kind));
    let missed = missed.map(|kind| kind.name()).join("; ");
    let failure = (!missed.is_empty())
        .then(|| format!("these causes were recognised in fewer than 9 of 10 trials: {missed}"));
    let results = Checked { cpu, threshold_us: late, trials: &done };
    report(table::trials(&done, late), &results, failure)
}

#[derive(Serialize)]
struct Checked<'a> {
    cpu: usize,
    threshold_us: u64,
    trials: &'a [CauseTrial],
}

fn start_watched(watch: &WatchSpec) -> std::io::Result<Command> {
    program::command(["latency", "explain", "--watched", &serde_json::to_string(watch)?])
}

fn start_flood(from: usize, onto: usize) -> std::io::Result<Command> {
    program::command(["latency", "explain", "--flood", &from.to_string(), &onto.to_string()])
}
