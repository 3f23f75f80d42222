//! The graphs in our runtime, by several plans.

use super::GraphRate;
use super::case::{GraphCase, ItemKind};
use super::kernel::{KernelBlock, KernelItem};
use super::meter::Meter;
use millstream_cpu::{CpuSet, Topology};
use millstream_dsp::Sample;
use millstream_flow::Each;
use millstream_flow::blocks::{NullSink, NullSource};
use millstream_flow::{
    Graph, GraphError, Partition, Plan, Profile, RunError, RunningGraph, WaitMode,
};
use millstream_planner::place::{self, Hints, crossing};
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Length of the measurement of a crossing between two CPUs.
const CROSSING: Duration = Duration::from_millis(240);

/// The spread of the blocks over threads.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum PlanSpread {
    /// All on one thread, bound to the first CPU.
    Single,
    /// Half of the stages, or of the chains, on each of two threads, bound to a CPU each.
    Halves,
    /// A thread for each block, on any CPU.
    PerBlock,
    /// By a plan.
    By(Plan),
}

impl PlanSpread {
    /// Returns the placement for a short run on one thread and the cost of a crossing here; or one
    /// thread, if a trial of both shows that it is faster.
    ///
    /// # Errors
    /// [`RunError`] when the graph breaks off.
    pub fn planned(case: GraphCase, cpus: &[usize], time: Duration) -> Result<Self, RunError> {
        let run = PlanRun::start(case, Self::Single, &cpus[..1], true)?;
        sleep(time);
        let profile = run.profile();
        run.stop()?;
        let allowed: CpuSet = cpus.iter().copied().collect();
        let topology = Topology::read(Path::new("/")).unwrap_or_else(|_| Topology::flat(&allowed));
        let shape = millstream_flow::Shape::of(&build(case)?.0);
        let costs = crossing::measure(cpus[0], cpus[cpus.len() - 1], CROSSING)?;
        let hints = Hints { allowed: Some(allowed), costs, ..Hints::default() };
        let placed = place::plan(&shape, &profile, &topology, &hints);
        let plan = placed.map_err(GraphError::from)?.plan;
        if plan.partitions.len() == 1 {
            return Ok(Self::By(plan));
        }
        let trial = |spread: Self| {
            let run = PlanRun::start(case, spread, cpus, true)?;
            sleep(time / 4);
            let rate = run.rate(time).items_per_s;
            run.stop().map(|()| rate)
        };
        let (planned, single) = (trial(Self::By(plan.clone()))?, trial(Self::Single)?);
        Ok(if planned > single { Self::By(plan) } else { Self::Single })
    }
}

/// The graph, with the names of its blocks by chain.
fn build(case: GraphCase) -> Result<(Graph, Vec<Vec<String>>), GraphError> {
    match case.item {
        ItemKind::Float => build_of::<f32>(case),
        ItemKind::Complex => build_of::<Sample>(case),
    }
}

fn build_of<T: KernelItem>(case: GraphCase) -> Result<(Graph, Vec<Vec<String>>), GraphError> {
    let mut graph = Graph::new();
    let mut pipes = Vec::new();
    for pipe in 0..case.shape.pipes {
        let mut names = vec![format!("source{pipe}")];
        graph.add(&names[0], NullSource::<T>::new())?;
        for stage in 0..case.shape.stages {
            let name = format!("stage{pipe}-{stage}");
            graph.add(&name, Each::new(KernelBlock::<T>::new(case.kernel)))?;
            names.push(name);
        }
        let sink = format!("sink{pipe}");
        graph.add(&sink, NullSink::<T>::new())?;
        names.push(sink);
        graph.chain(&names.iter().map(String::as_str).collect::<Vec<_>>())?;
        pipes.push(names);
    }
    Ok((graph, pipes))
}

/// The plan of a spread, on two CPUs at most.
fn plan(pipes: &[Vec<String>], spread: PlanSpread, cpus: &[usize]) -> Plan {
    let partition = |name: String, blocks: Vec<String>, cpu: Option<usize>| Partition {
        name,
        blocks,
        cpu,
        wait: WaitMode::Park,
    };
    let partitions = match spread {
        PlanSpread::By(plan) => return plan,
        PlanSpread::Single => vec![partition("all".into(), pipes.concat(), cpus.first().copied())],
        PlanSpread::PerBlock => pipes
            .concat()
            .into_iter()
            .map(|name| partition(name.clone(), vec![name], None))
            .collect(),
        PlanSpread::Halves => {
            let (first, second) = halves(pipes);
            let first = partition("first".into(), first, cpus.first().copied());
            vec![first, partition("second".into(), second, cpus.get(1).copied())]
        }
    };
    Plan { partitions, ..Plan::default() }
}

/// Whole chains where there are several, else the two halves of the only chain.
fn halves(pipes: &[Vec<String>]) -> (Vec<String>, Vec<String>) {
    match pipes {
        [chain] => {
            // A source writes and a sink reads: about one stage together.
            let middle = chain.len().div_ceil(2);
            (chain[..middle].to_vec(), chain[middle..].to_vec())
        }
        chains => {
            let (first, second) = chains.split_at(chains.len() / 2);
            (first.concat(), second.concat())
        }
    }
}

/// A run by a plan, from which rates are measured.
pub(super) struct PlanRun {
    running: RunningGraph,
    sinks: Vec<String>,
}

impl PlanRun {
    /// Starts the graph on the CPUs `cpus`, to which the calling thread is confined. `timed`: with
    /// the clock reads of the cost model.
    ///
    /// # Errors
    /// [`GraphError`] when it cannot start.
    pub fn start(
        case: GraphCase,
        spread: PlanSpread,
        cpus: &[usize],
        timed: bool,
    ) -> Result<Self, GraphError> {
        let (mut graph, pipes) = build(case)?;
        graph.set_timed(timed);
        let sinks = pipes.iter().filter_map(|pipe| pipe.last().cloned()).collect();
        let running = graph.start(&plan(&pipes, spread, cpus))?;
        Ok(Self { running, sinks })
    }

    /// Measures the rate over `time`, from now on. While no item passes because others have the
    /// CPUs, extends it by further `time`, at most five seconds.
    #[must_use]
    pub fn rate(&self, time: Duration) -> GraphRate {
        let before = self.items();
        let meter = Meter::start();
        let patience = Instant::now() + Duration::from_secs(5);
        loop {
            sleep(time);
            let items = self.items() - before;
            if items > 0 || Instant::now() >= patience {
                return meter.rate(items);
            }
        }
    }

    /// The runtime's costs of blocks and connections.
    #[must_use]
    pub fn profile(&self) -> Profile {
        self.running.profile()
    }

    /// Ends it.
    ///
    /// # Errors
    /// [`RunError`] when a block failed.
    pub fn stop(self) -> Result<(), RunError> {
        self.running.stopper().stop();
        self.running.wait().map(|_| ())
    }

    fn items(&self) -> u64 {
        let snapshot = self.running.snapshot();
        let items = |name: &String| snapshot.block(name).map_or(0, |block| block.items_in);
        self.sinks.iter().map(items).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_hold_everything_once() {
        let names = |n: usize| (0..n).map(|i| format!("b{i}")).collect::<Vec<_>>();
        for pipes in [vec![names(3)], vec![names(10)], vec![names(8); 4]] {
            let (first, second) = halves(&pipes);
            assert!(!first.is_empty() && !second.is_empty());
            assert_eq!([first, second].concat(), pipes.concat());
        }
    }
}
