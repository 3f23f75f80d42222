//! The measurer that runs a graph file. The only part of the tuner with a clock.

mod ending;

use super::drift::{Cost, sink_items, source_items};
use super::session::{PlanMeasurement, PlanMeasurer, TrialError};
use ending::await_end;
use millstream_cpu::usage::process_cpu_time;
use millstream_flow::file::{GraphFile, GraphFileError};
use millstream_flow::graph::GraphError;
use millstream_flow::observe::Profile;
use millstream_flow::plan::Plan;
use millstream_flow::registry::Registry;
use millstream_flow::runtime::{RunError, RunningGraph, Snapshot};
use serde::Serialize;
use std::time::{Duration, Instant};

/// The interval at which a run is polled.
const TICK: Duration = Duration::from_millis(2);
/// The number of measurements that a budget should suffice for.
const MEASUREMENTS: u32 = 600;
/// The shortest and longest slice of an endless run.
const SLICE: [Duration; 2] = [Duration::from_millis(50), Duration::from_secs(1)];
/// The shortest short run of such a graph.
const GLANCE_MIN: Duration = Duration::from_millis(10);
/// The least number of items in a slice at the sinks for counting there.
const SINK_ITEMS_MIN: u64 = 1000;
/// The number of runs without an item that are repeated.
const SILENT_RUNS_MAX: usize = 3;
/// The multiple of the default's time after which a plan is abandoned.
const PATIENCE: u32 = 10;

/// The quantity to maximise.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Objective {
    /// Items of the sources per second of wall clock.
    Throughput,
    /// Items of the sources per second of CPU time, for graphs whose rate is set by a radio or a
    /// throttle. Lost items reduce the figure in proportion.
    Cpu,
}

impl Objective {
    /// Returns the unit of its figures.
    #[must_use]
    pub fn unit(self) -> &'static str {
        match self {
            Self::Throughput => "items/s",
            Self::Cpu => "items per CPU second",
        }
    }
}

/// The length of a measurement.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Length {
    /// Until the graph ends: a recording that is short enough.
    Whole,
    /// For this long, after a quarter of it as warm-up.
    Slice(Duration),
}

/// The reason why a run has no result.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RehearsalError {
    /// The graph file.
    #[error(transparent)]
    File(#[from] GraphFileError),
    /// The plan does not fit, or memory or threads are refused.
    #[error(transparent)]
    Graph(#[from] GraphError),
    /// A block failed.
    #[error(transparent)]
    Run(#[from] RunError),
    /// The sources produced no item.
    #[error(
        "no item left the sources in {0:.1?}: check that the radio sends, or that the file is not \
         empty"
    )]
    Silence(Duration),
    /// Much slower than the default.
    #[error(
        "this plan was given up after {0:.1?}, {PATIENCE} times as long as the default plan takes"
    )]
    TooSlow(Duration),
    /// A block does not return.
    #[error(
        "the graph did not end within {0:.1?} after it was stopped: a block waits inside `work` \
         without checking `Context::may_block`"
    )]
    Stuck(Duration),
    /// The user asked for the end.
    #[error("interrupted")]
    Interrupted,
}

/// Measures plans by running a graph file: built anew each time, without its outside effects
/// ([`GraphFile::build_rehearsal`]).
pub struct Rehearsal<'a> {
    file: &'a GraphFile,
    registry: &'a Registry,
    overrides: &'a [String],
    asked: &'a dyn Fn() -> bool,
    /// The blocks that were replaced.
    pub rehearsed: Vec<String>,
    /// The quantity to maximise.
    pub objective: Objective,
    /// The length of a measurement.
    pub length: Length,
    /// The rate of the default, items per second.
    rate: f64,
    /// Items of the sources for each of the sinks; `None` where the sinks get too few to count.
    per_sink_item: Option<f64>,
    /// The costs of the default's blocks and connections.
    pub profile: Profile,
    took: Duration,
    /// The blocks that set the rate of items, so that only CPU time can be saved.
    pub paced: Vec<String>,
    costs: Vec<(Plan, Cost)>,
}

/// One run.
struct Sample {
    items: u64,
    elapsed: Duration,
    cpu: Duration,
    has_ended: bool,
    snapshot: Snapshot,
    /// Only for a slice.
    profile: Profile,
}

impl<'a> Rehearsal<'a> {
    /// Runs the default twice, once to warm up caches and once to classify the graph. `asked`
    /// returns whether the user wants the run to end.
    ///
    /// # Errors
    /// [`RehearsalError`]: the default does not run.
    pub fn prepare(
        file: &'a GraphFile,
        registry: &'a Registry,
        overrides: &'a [String],
        default: &Plan,
        (budget, objective): (Duration, Option<Objective>),
        asked: &'a dyn Fn() -> bool,
    ) -> Result<Self, RehearsalError> {
        let slice = (budget / MEASUREMENTS).clamp(SLICE[0], SLICE[1]);
        let mut this = Self {
            file,
            registry,
            overrides,
            asked,
            rehearsed: file.rehearsed(registry),
            objective: objective.unwrap_or(Objective::Throughput),
            length: Length::Slice(2 * slice),
            rate: 0.0,
            per_sink_item: None,
            profile: Profile::default(),
            took: Duration::ZERO,
            paced: file.paced(registry),
            costs: Vec::new(),
        };
        this.run_patiently(default, this.length)?;
        let started = Instant::now();
        let sample = this.run_patiently(default, this.length)?;
        this.took = started.elapsed();
        this.length = if sample.has_ended { Length::Whole } else { Length::Slice(slice) };
        this.rate = sample.items as f64 / sample.elapsed.as_secs_f64();
        let sinks = sink_items(&sample.snapshot);
        this.per_sink_item = (sinks >= 2 * SINK_ITEMS_MIN)
            .then(|| source_items(&sample.snapshot) as f64 / sinks as f64);
        this.objective = objective.unwrap_or(match this.paced.is_empty() {
            true => Objective::Throughput,
            false => Objective::Cpu,
        });
        this.profile = sample.profile;
        Ok(this)
    }

    /// Returns the costs of the runs with a plan.
    pub fn costs<'b>(&'b self, plan: &'b Plan) -> impl Iterator<Item = Cost> + 'b {
        self.costs.iter().filter(move |(of, _)| of == plan).map(|(_, cost)| *cost)
    }

    fn run(&self, plan: &Plan, length: Length) -> Result<Sample, RehearsalError> {
        let graph = self.file.build_rehearsal(self.registry, self.overrides)?;
        let (started, cpu) = (Instant::now(), process_cpu_time());
        let running = graph.start(plan)?;
        let sample = match length {
            Length::Whole => self.run_whole(running, started, cpu)?,
            Length::Slice(slice) => self.run_slice(running, started, cpu, slice)?,
        };
        if (self.asked)() {
            return Err(RehearsalError::Interrupted);
        }
        if sample.items == 0 {
            return Err(RehearsalError::Silence(sample.elapsed));
        }
        Ok(sample)
    }

    /// Repeats runs without items: on a crowded machine a whole slice may pass before a thread
    /// runs.
    fn run_patiently(&self, plan: &Plan, length: Length) -> Result<Sample, RehearsalError> {
        for _ in 0..SILENT_RUNS_MAX {
            match self.run(plan, length) {
                Err(RehearsalError::Silence(_)) => {}
                result => return result,
            }
        }
        self.run(plan, length)
    }

    /// Runs to the end, or until it takes much longer than the default.
    fn run_whole(
        &self,
        running: RunningGraph,
        started: Instant,
        cpu: Duration,
    ) -> Result<Sample, RehearsalError> {
        let limit = (self.took * PATIENCE).max(Duration::from_secs(1));
        let end = await_end(running, limit, self.asked)?;
        let elapsed = end.at - started;
        if end.was_stopped {
            return Err(RehearsalError::TooSlow(elapsed));
        }
        let (snapshot, cpu) = (end.snapshot, end.cpu - cpu);
        let items = source_items(&snapshot);
        Ok(Sample { items, elapsed, cpu, has_ended: true, snapshot, profile: Profile::default() })
    }

    /// Returns the items that have passed, counted at the sinks where they get enough: a source
    /// that runs ahead into large rings has completed less than its count.
    fn passed(&self, snapshot: &Snapshot) -> u64 {
        match self.per_sink_item {
            Some(factor) => (sink_items(snapshot) as f64 * factor) as u64,
            None => source_items(snapshot),
        }
    }

    /// Runs for a slice and counts its items; the whole run if it ends before.
    fn run_slice(
        &self,
        running: RunningGraph,
        started: Instant,
        cpu: Duration,
        slice: Duration,
    ) -> Result<Sample, RehearsalError> {
        let begin = (started, cpu, 0);
        let mut from = begin;
        self.sleep(&running, slice / 4);
        if !running.is_finished() {
            from = (Instant::now(), process_cpu_time(), self.passed(&running.snapshot()));
            self.sleep(&running, slice);
        }
        let has_ended = running.is_finished();
        let (now, cpu, items) =
            (Instant::now(), process_cpu_time(), self.passed(&running.snapshot()));
        let profile = running.profile();
        let snapshot = await_end(running, Duration::ZERO, self.asked)?.snapshot;
        let from = if has_ended { begin } else { from };
        let (elapsed, cpu) = (now - from.0, cpu - from.1);
        Ok(Sample { items: items - from.2, elapsed, cpu, has_ended, snapshot, profile })
    }

    fn sleep(&self, running: &RunningGraph, duration: Duration) {
        let until = Instant::now() + duration;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() || running.is_finished() || (self.asked)() {
                return;
            }
            std::thread::sleep(left.min(TICK));
        }
    }
}

impl Rehearsal<'_> {
    fn figure(&mut self, plan: &Plan, length: Length) -> Result<PlanMeasurement, TrialError> {
        let started = Instant::now();
        let sample = self.run_patiently(plan, length)?;
        let is_whole = length == self.length;
        if let Some(cost) = Cost::of(&sample.snapshot, &self.rehearsed).filter(|_| is_whole) {
            self.costs.push((plan.clone(), cost));
        }
        let rate = sample.items as f64 / sample.elapsed.as_secs_f64();
        let figure = match self.objective {
            Objective::Throughput => rate,
            Objective::Cpu => {
                let cpu_s = sample.cpu.as_secs_f64().max(1e-9);
                sample.items as f64 / cpu_s * (rate / self.rate).min(1.0)
            }
        };
        Ok(PlanMeasurement { figure, spent: started.elapsed() })
    }
}

impl PlanMeasurer for Rehearsal<'_> {
    fn measure(&mut self, plan: &Plan) -> Result<PlanMeasurement, TrialError> {
        self.figure(plan, self.length)
    }

    /// For a graph that soon ends by itself the beginning is not representative: it is run as a
    /// whole.
    fn glance(&mut self, plan: &Plan, share: f64) -> Result<PlanMeasurement, TrialError> {
        let length = match self.length {
            Length::Whole => Length::Whole,
            Length::Slice(slice) => Length::Slice(slice.mul_f64(share).max(GLANCE_MIN)),
        };
        self.figure(plan, length)
    }
}
