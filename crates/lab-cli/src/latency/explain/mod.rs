//! `millstream-lab latency explain`: explains why a thread was late.

pub(super) mod table;

use super::late::explained_us;
use crate::experiment::{Experiment, Unmeasured, in_rounds, until_done};
use crate::numbers::{cpu, seconds, whole, within};
use crate::{
    interrupt,
    output::{Join, Report},
    program,
};
use anyhow::{Context, bail};
use millstream_cpu::sched::Class;
use millstream_lab::CaseRuns;
use millstream_lab::explain::observer::WatchSpec;
use millstream_lab::explain::trials::{CauseTrial, CauseTrials, Injection};
use millstream_lab::explain::{WatchedThread, flood, observer};
use millstream_measure::explained::Explanation;
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

crate::results! {
    /// The late answers of a thread.
    struct ExplainedThread<'a> {
        /// Its CPU.
        cpu: usize,
        /// Answers later than this are explained, microseconds.
        threshold_us: u64,
        /// Each late answer.
        outliers: &'a [Explanation],
    }

    /// With `--check`: whether causes made on purpose were named.
    struct CheckedCauses<'a> {
        /// The CPU of the thread.
        cpu: usize,
        /// Answers later than this are explained, microseconds.
        threshold_us: u64,
        /// Each trial.
        trials: &'a [CauseTrial],
    }
}

/// Succeeds when it could watch; with `--check`, when every cause was named often enough.
pub fn run(args: Args) -> anyhow::Result<Report> {
    if let Some(plan) = &args.watched {
        let plan = serde_json::from_str(plan)
            .context("the JSON of the internal option --watched is not valid")?;
        observer::watch(&plan, BufReader::new(stdin()), &mut stdout())?;
        return Ok(Report::none());
    }
    if let Some([from, onto]) = args.flood.as_deref() {
        if let Err(error) = flood::serve(*from, *onto, BufReader::new(stdin()), &mut stdout()) {
            // The other process reports it.
            println!("{error}");
        }
        return Ok(Report::none());
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

/// The wait for late answers.
struct Lookout<'a> {
    args: &'a Args,
    thread: &'a mut WatchedThread,
    begun: Instant,
}

impl Lookout<'_> {
    fn left(&self) -> Duration {
        Duration::from_secs_f64(self.args.duration).saturating_sub(self.begun.elapsed())
    }
}

impl Experiment for Lookout<'_> {
    type Case = ();
    type Outcome = Option<Explanation>;

    fn name(&self, (): &()) -> String {
        format!("watching for late answers, {:.0} s left", self.left().as_secs_f64())
    }

    fn step(&mut self, (): &(), _: usize) -> Result<Self::Outcome, Unmeasured> {
        self.thread.arm()?;
        // In steps, so that it can be ended.
        Ok(self.thread.wait(Duration::from_secs(1).min(self.left()))?)
    }

    fn is_done(&self, so_far: &[CaseRuns<Self::Outcome>]) -> bool {
        let found = so_far[0].outcomes().flatten().count();
        found >= self.args.outliers as usize || self.left().is_zero()
    }
}

fn look_out(
    args: &Args,
    cpu: usize,
    threshold_us: u64,
    thread: &mut WatchedThread,
) -> anyhow::Result<Report> {
    let mut lookout = Lookout { args, thread, begun: Instant::now() };
    let all = until_done(&mut lookout, &[()]);
    let seconds = lookout.begun.elapsed().as_secs_f64();
    let failure = all.broken();
    let found: Vec<_> = all.outcomes().flatten().collect();
    let mut text = format!(
        "{} on CPU {cpu}, every {} us: {} answers later than {threshold_us} us in {seconds:.1} s\n",
        args.class,
        args.interval * 1e6,
        found.len(),
    );
    text.extend(found.iter().map(table::explanation));
    Ok(Report::of(text, &ExplainedThread { cpu, threshold_us, outliers: &found }).failing(failure))
}

/// The trials of causes that are made on purpose.
impl Experiment for CauseTrials<'_> {
    type Case = Injection;
    type Outcome = CauseTrial;

    fn name(&self, injected: &Injection) -> String {
        injected.name().to_owned()
    }

    fn step(&mut self, injected: &Injection, _: usize) -> Result<CauseTrial, Unmeasured> {
        Ok(self.play(*injected)?)
    }
}

fn check(
    args: &Args,
    cpu: usize,
    threshold_us: u64,
    thread: &mut WatchedThread,
) -> anyhow::Result<Report> {
    if args.repeat == 0 {
        bail!("--repeat is 0: give 1 or more trials");
    }
    let mut trials = CauseTrials::prepare(thread, cpu, start_flood)?;
    let all = in_rounds(&mut trials, &Injection::ALL, args.repeat as usize).whole()?;
    let is_short = |runs: &CaseRuns<CauseTrial>| {
        runs.outcomes().filter(|trial| trial.right).count() * 10 < runs.runs.len() * 9
    };
    let short = Injection::ALL.iter().zip(&all.cases).filter(|(_, runs)| is_short(runs));
    let missed = short.map(|(kind, _)| kind.name()).join("; ");
    let failure = (!missed.is_empty())
        .then(|| format!("these causes were recognised in fewer than 9 of 10 trials: {missed}"));
    let done: Vec<_> = all.outcomes().collect();
    let results = CheckedCauses { cpu, threshold_us, trials: &done };
    Ok(Report::of(table::trials(&done, threshold_us), &results).failing(failure))
}

fn start_watched(watch: &WatchSpec) -> std::io::Result<Command> {
    program::command(["latency", "explain", "--watched", &serde_json::to_string(watch)?])
}

fn start_flood(from: usize, onto: usize) -> std::io::Result<Command> {
    program::command(["latency", "explain", "--flood", &from.to_string(), &onto.to_string()])
}
