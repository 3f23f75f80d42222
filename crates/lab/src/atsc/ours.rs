//! Our receiver on a recording, by a plan.

use super::{AtscError, file};
use millstream_atsc::blocks::register;
use millstream_cpu::{CpuSet, Topology, usage};
use millstream_flow::Shape;
use millstream_flow::{GraphFile, Plan, Profile, Registry, WaitMode};
use millstream_planner::place::{self, Hints};
use std::path::Path;
use std::time::{Duration, Instant};

/// The graph of `millstream run`.
const GRAPH: &str = include_str!("../../../../graphs/atsc-rx.toml");

/// A run.
#[derive(Clone, Debug)]
pub struct ReceiverRun {
    /// Wall-clock time.
    pub wall_s: f64,
    /// CPU time of the process, user and system.
    pub cpu_s: f64,
    /// The costs of the blocks.
    pub profile: Profile,
}

/// The types of the graph's blocks. The receiver's reports are dropped here.
fn registry() -> Registry {
    let mut registry = Registry::builtin();
    let _ = register(&mut registry);
    registry
}

/// The receiver's graph for one recording.
pub struct ReceiverGraph {
    file: GraphFile,
    set: Vec<String>,
}

impl ReceiverGraph {
    /// Creates the graph from a recording to a transport stream.
    ///
    /// # Errors
    /// [`AtscError::File`] when a name is not UTF-8.
    pub fn new(input: &Path, rate_hz: f64, output: &Path) -> Result<Self, AtscError> {
        let text = |path: &Path| {
            let text = path.to_str().map(str::to_owned);
            text.ok_or_else(|| {
                file(path)(std::io::Error::from(std::io::ErrorKind::InvalidFilename))
            })
        };
        let set = vec![
            format!("in={}", text(input)?),
            format!("rate={rate_hz}"),
            format!("out={}", text(output)?),
            "format=sc16".to_owned(),
        ];
        Ok(Self { file: GraphFile::parse("atsc-rx", GRAPH)?, set })
    }

    /// Returns the plan with all blocks on one thread, bound to a CPU.
    ///
    /// # Errors
    /// [`AtscError::Graph`] when the graph cannot be built.
    pub fn single(&self, cpu: usize) -> Result<Plan, AtscError> {
        let graph = self.file.build_rehearsal(&registry(), &self.set)?;
        let mut plan = Plan::single(&graph, WaitMode::Park);
        plan.partitions.iter_mut().for_each(|partition| partition.cpu = Some(cpu));
        Ok(plan)
    }

    /// Returns the placement on these CPUs for the costs of a run.
    ///
    /// # Errors
    /// [`AtscError`] when there is no placement.
    pub fn placed(&self, profile: &Profile, cpus: &CpuSet) -> Result<Plan, AtscError> {
        let graph = self.file.build_rehearsal(&registry(), &self.set)?;
        let topology = Topology::read(Path::new("/")).map_err(AtscError::Machine)?;
        let hints = Hints { allowed: Some(cpus.clone()), ..Hints::default() };
        let placed = place::plan(&Shape::of(&graph), profile, &topology, &hints);
        Ok(placed.map_err(|error| AtscError::Plan(error.to_string()))?.plan)
    }

    /// Decodes the whole recording.
    ///
    /// # Errors
    /// [`AtscError`] when the graph cannot be built or breaks off.
    pub fn run(&self, plan: &Plan) -> Result<ReceiverRun, AtscError> {
        let registry = registry();
        let graph = self.file.overwriting(&registry).build(&registry, &self.set)?;
        let (start, cpu) = (Instant::now(), usage::process_cpu_time());
        let running = graph.start(plan).map_err(millstream_flow::RunError::from)?;
        while !running.is_finished() {
            std::thread::sleep(Duration::from_millis(1));
        }
        let wall_s = start.elapsed().as_secs_f64();
        let profile = running.profile();
        running.wait()?;
        let cpu_s = usage::process_cpu_time().saturating_sub(cpu).as_secs_f64();
        Ok(ReceiverRun { wall_s, cpu_s, profile })
    }
}
