//! Runs a graph to its end with a live line, and turns its counters into results.

#[cfg(test)]
mod effects;

use crate::dashboard::Dashboard;
use crate::interrupt;
use crate::live::Live;
use crate::output::{Join, describe, note, short};
use crate::signal::SignalReport;
use anyhow::{Context, anyhow};
use millstream_atsc::blocks::Monitors;
use millstream_flow::{
    BlockStats, Graph, Plan, Profile, Registry, RunError, RunningGraph, Shape, Snapshot,
};
use millstream_publish::Publications;
use millstream_radio::{Cause, Ledger};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Display;
use std::path::Path;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// Time limit of an aborted run's end; blocks that hang do not return.
const GIVE_UP_AFTER: Duration = Duration::from_secs(1);

/// Registers the block types of the program around this command.
static MORE_BLOCKS: OnceLock<fn(&mut Registry)> = OnceLock::new();

/// Adds block types to [`registry`]; only the first call has an effect.
pub fn add_blocks(register: fn(&mut Registry)) {
    let _ = MORE_BLOCKS.set(register);
}

/// Tells blocks how to find devices, in programs with the feature `gpu` or `cuda`.
pub fn register_devices() {
    #[cfg(any(feature = "gpu", feature = "cuda"))]
    millstream_accel::register_devices(millstream_gpu::devices);
}

/// Every type of block that this program knows, and the monitors of its receivers.
pub fn registry() -> (Registry, Monitors) {
    let (registry, monitors, _) = registry_with_sinks();
    (registry, monitors)
}

/// Every type of block that this program knows, the monitors of its receivers, and the sinks that
/// publish.
pub fn registry_with_sinks() -> (Registry, Monitors, Publications) {
    register_devices();
    let mut registry = Registry::builtin();
    millstream_blocks::register(&mut registry);
    millstream_radio::block::register(&mut registry);
    let monitors = millstream_atsc::blocks::register(&mut registry);
    let publications = millstream_publish::register(&mut registry);
    if let Some(register) = MORE_BLOCKS.get() {
        register(&mut registry);
    }
    (registry, monitors, publications)
}

/// The result of a run.
#[derive(Serialize)]
pub struct GraphReport {
    /// Whether the user ended it early.
    pub interrupted: bool,
    /// Wall-clock time, seconds.
    pub elapsed_s: f64,
    /// CPU time of the whole process, seconds.
    pub cpu_s: f64,
    /// The plan at its end.
    pub plan: Plan,
    /// The costs of its blocks and connections over the whole run.
    pub profile: Profile,
    /// The last counters.
    #[serde(flatten)]
    pub snapshot: Snapshot,
}

/// Runs `graph` until it ends or the user asks; `status` makes the live line. The graph is the
/// verb's own: errors omit the names of its blocks, which the user has not chosen.
pub fn run(
    graph: Graph,
    plan: &Plan,
    (live, dashboard): (&mut Live, &mut Option<Dashboard>),
    signals: impl Fn() -> Vec<SignalReport>,
    status: impl Fn(Duration, &Snapshot) -> String,
) -> anyhow::Result<GraphReport> {
    let run = attended(graph, plan, |now, elapsed, running| {
        if let Some(dashboard) = dashboard {
            dashboard.attend(now, elapsed, running, &signals);
        }
        live.show(now, || status(elapsed, &running.snapshot()));
        Ok(())
    });
    live.end();
    if let (Some(dashboard), Ok(run)) = (dashboard, &run) {
        dashboard.end(run, signals());
    }
    plain(run)
}

/// Prints what people should know of the sinks: which outlets are away, and which are back.
pub fn tell_notes(publications: &Publications, live: &mut Live) {
    for line in publications.take_notes() {
        live.end();
        note(format_args!("millstream: {line}"));
    }
}

/// Leaves the block's name out of an error: the user of a verb does not know its graph.
pub fn plain(run: anyhow::Result<GraphReport>) -> anyhow::Result<GraphReport> {
    run.map_err(|error| match error.downcast::<RunError>() {
        Ok(RunError::Block { source, .. }) => anyhow!(source),
        Ok(other) => other.into(),
        Err(error) => error,
    })
}

/// Prints the ledgers of the radios of a run that has failed.
fn tell_ledgers(last: &Snapshot) {
    for block in &last.blocks {
        if let Some(ledger) = LedgerReport::of(block).filter(|ledger| ledger.expected > 0) {
            note(format_args!("until the failure: {}", ledger.summary()));
        }
    }
}

/// Runs `graph` until it ends or the user asks, or until `attend` returns an error; it is called
/// fifty times a second with the time and the elapsed time.
pub fn attended(
    graph: Graph,
    plan: &Plan,
    mut attend: impl FnMut(Instant, Duration, &mut RunningGraph) -> anyhow::Result<()>,
) -> anyhow::Result<GraphReport> {
    interrupt::install();
    let started = Instant::now();
    let allowed = millstream_cpu::thread::allowed_cpus().ok();
    let plan = millstream_planner::place::complete(plan, &Shape::of(&graph), allowed.as_ref())
        .context("the plan does not fit the graph")?;
    let mut running = graph.start(&plan).context("cannot start the graph")?;
    let stopper = running.stopper();
    while !running.is_finished() {
        std::thread::sleep(Duration::from_millis(20));
        if interrupt::asked() {
            stopper.stop();
        }
        let now = Instant::now();
        if let Err(error) = attend(now, now - started, &mut running) {
            running.abandon(GIVE_UP_AFTER);
            return Err(error);
        }
    }
    let (profile, plan) = (running.profile(), running.plan().clone());
    let last = running.snapshot();
    let snapshot = running.wait().inspect_err(|_| tell_ledgers(&last))?;
    let elapsed_s = started.elapsed().as_secs_f64();
    let cpu_s = millstream_cpu::usage::process_cpu_time().as_secs_f64();
    Ok(GraphReport { interrupted: interrupt::asked(), elapsed_s, cpu_s, plan, profile, snapshot })
}

/// The metrics of a block that are not zero: names and values.
pub fn metrics(block: &BlockStats) -> Vec<String> {
    let value = |name: &str| block.metric(name).filter(|value| value.is_finite() && *value != 0.0);
    let metric = |name: &String| Some(format!("{name} {}", short(value(name)?)));
    block.metrics.keys().filter_map(metric).collect()
}

/// Partitions with their blocks in one line.
pub fn describe_plan(plan: &Plan) -> String {
    plan.partitions.iter().map(|partition| partition.blocks.join(", ")).join(" | ")
}

/// Adds to the error of a failed run the path of the partial file that a file sink wrote for
/// `path`.
pub fn with_part(error: anyhow::Error, path: &Path) -> anyhow::Error {
    let part = millstream_output::part_of(path);
    let kept = part.metadata().is_ok_and(|data| data.is_file() && data.len() > 0);
    let what = describe(&error);
    if kept {
        anyhow!("{what}; the file {} contains the data up to that point", part.display())
    } else {
        error
    }
}

/// The causes of losses, and how many samples each lost.
pub fn causes(lost: impl Iterator<Item = (impl Display, u64)>) -> String {
    let causes = lost.filter(|loss| loss.1 > 0).map(|(cause, lost)| format!("{cause} {lost}"));
    let causes = causes.join(", ");
    if causes.is_empty() { "no loss".to_owned() } else { causes }
}

/// Whether a ledger balances, in words.
pub fn verdict(balances: bool) -> &'static str {
    if balances { "balances" } else { "DOES NOT BALANCE" }
}

/// The ledger of one stream, read from the counters of its source block.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct LedgerReport {
    /// Expected samples.
    pub expected: u64,
    /// Delivered samples.
    pub delivered: u64,
    /// Samples lost, by cause.
    pub lost: BTreeMap<&'static str, u64>,
    /// Samples that arrived after the end: neither expected nor lost.
    pub after_end: u64,
    /// expected = delivered + lost.
    pub balances: bool,
}

impl From<&Ledger> for LedgerReport {
    fn from(ledger: &Ledger) -> Self {
        Self {
            expected: ledger.expected,
            delivered: ledger.delivered,
            lost: ledger.losses().map(|(cause, lost)| (cause.name(), lost)).collect(),
            after_end: ledger.after_end,
            balances: ledger.balance().is_ok(),
        }
    }
}

impl LedgerReport {
    /// The ledger of `block`; `None` when it is not a radio source.
    pub fn of(block: &BlockStats) -> Option<Self> {
        let count = |name: &str| block.metric(name).map(|value| value as u64);
        let (expected, delivered) = (count("expected")?, count("delivered")?);
        let lost: BTreeMap<_, _> = Cause::ALL
            .iter()
            .map(|cause| (cause.name(), count(cause.name()).unwrap_or(0)))
            .collect();
        let after_end = count("after_end").unwrap_or(0);
        let balances = expected == delivered + lost.values().sum::<u64>();
        Some(Self { expected, delivered, lost, after_end, balances })
    }

    /// Samples lost by any cause.
    pub fn lost_total(&self) -> u64 {
        self.lost.values().sum()
    }

    /// The message when it does not balance.
    pub fn defect(&self) -> String {
        let Self { expected, delivered, .. } = self;
        format!(
            "the sample ledger does not balance: {expected} expected, {delivered} delivered, \
             {} lost; this is a defect, please report it",
            self.lost_total()
        )
    }

    /// A summary in one line.
    pub fn summary(&self) -> String {
        let causes = causes(self.lost.iter().map(|(cause, lost)| (*cause, *lost)));
        let verdict = verdict(self.balances);
        let after_end = match self.after_end {
            0 => String::new(),
            samples => format!("; {samples} arrived after the end, not counted"),
        };
        format!(
            "{} samples expected = {} delivered + {} lost ({causes}): {verdict}{after_end}",
            self.expected,
            self.delivered,
            self.lost_total()
        )
    }
}
