//! The graphs in our runtime, by several plans.

use super::Rate;
use super::case::Case;
use super::kernel::{Number, Stage};
use super::meter::Meter;
use millstream_blocks::Through;
use millstream_flow::blocks::{NullSink, NullSource};
use millstream_flow::place::{self, Hints};
use millstream_flow::{Graph, GraphError, Partition, Plan, Profile, RunError, Running, WaitMode};
use millstream_sys::{CpuSet, Topology};
use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

/// How the blocks are spread.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Spread {
    /// All on one thread, bound to the first CPU.
    Single,
    /// Half of the stages, or of the chains, on each of two threads, bound to a CPU each.
    Halves,
    /// A thread for each block, wherever it may run.
    PerBlock,
    /// As a plan says.
    By(Plan),
}

impl Spread {
    /// What the partitioner makes of a short run on one thread.
    ///
    /// # Errors
    /// [`RunError`] when the graph breaks off.
    pub fn planned<T: Number>(
        case: Case,
        cpus: &[usize],
        time: Duration,
    ) -> Result<Self, RunError> {
        let run = Run::start::<T>(case, Self::Single, &cpus[..1], true)?;
        sleep(time);
        let profile = run.profile();
        run.stop()?;
        let allowed: CpuSet = cpus.iter().copied().collect();
        let topology = Topology::read(Path::new("/")).unwrap_or_else(|_| Topology::flat(&allowed));
        let shape = place::Shape::of(&build::<T>(case)?.0);
        let hints = Hints { allowed: Some(allowed), ..Hints::default() };
        let placed = place::plan(&shape, &profile, &topology, &hints);
        Ok(Self::By(placed.map_err(GraphError::from)?.plan))
    }
}

/// The graph, with the names of its blocks by chain.
fn build<T: Number>(case: Case) -> Result<(Graph, Vec<Vec<String>>), GraphError> {
    let mut graph = Graph::new();
    let mut pipes = Vec::new();
    for pipe in 0..case.shape.pipes {
        let mut names = vec![format!("source{pipe}")];
        graph.add(&names[0], NullSource::<T>::new())?;
        for stage in 0..case.shape.stages {
            let name = format!("stage{pipe}-{stage}");
            graph.add(&name, Through::new(Stage::<T>::new(case.kernel)))?;
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
fn plan(pipes: &[Vec<String>], spread: Spread, cpus: &[usize]) -> Plan {
    let partition = |name: String, blocks: Vec<String>, cpu: Option<usize>| Partition {
        name,
        blocks,
        cpu,
        wait: WaitMode::Park,
    };
    let partitions = match spread {
        Spread::By(plan) => return plan,
        Spread::Single => vec![partition("all".into(), pipes.concat(), cpus.first().copied())],
        Spread::PerBlock => pipes
            .concat()
            .into_iter()
            .map(|name| partition(name.clone(), vec![name], None))
            .collect(),
        Spread::Halves => {
            let (first, second) = halves(pipes);
            let first = partition("first".into(), first, cpus.first().copied());
            vec![first, partition("second".into(), second, cpus.get(1).copied())]
        }
    };
    Plan { partitions, ..Plan::default() }
}

/// Whole chains where there are several, else the first and the second half of the one.
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

/// A run by a plan, from which rates are taken.
pub struct Run {
    running: Running,
    sinks: Vec<String>,
}

impl Run {
    /// Starts the graph on the CPUs `cpus`, to which the calling thread is confined. `timed`: with
    /// the clock reads of the cost model.
    ///
    /// # Errors
    /// [`GraphError`] when it cannot start.
    pub fn start<T: Number>(
        case: Case,
        spread: Spread,
        cpus: &[usize],
        timed: bool,
    ) -> Result<Self, GraphError> {
        let (mut graph, pipes) = build::<T>(case)?;
        graph.set_timed(timed);
        let sinks = pipes.iter().filter_map(|pipe| pipe.last().cloned()).collect();
        let running = graph.start(&plan(&pipes, spread, cpus))?;
        Ok(Self { running, sinks })
    }

    /// The rate over `time`, from now on.
    #[must_use]
    pub fn rate(&self, time: Duration) -> Rate {
        let before = self.items();
        let meter = Meter::start();
        sleep(time);
        let items = self.items() - before;
        meter.rate(items)
    }

    /// What the runtime says that blocks and connections cost.
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
