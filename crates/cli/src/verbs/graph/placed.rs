//! The placement of a graph's blocks on a machine, by their costs.

mod inputs;

use crate::block_types;
use crate::crossings;
use crate::interrupt;
use crate::live::Live;
use crate::numbers::{seconds, whole};
use crate::output;
use crate::signal::SignalReport;
use anyhow::{Context, ensure};
use inputs::TargetMachine;
use millstream_flow::Shape;
use millstream_flow::{Graph, GraphFile, Plan, Profile, WaitMode};
use millstream_planner::place::{self, Costs, Hints, Placed};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Length of the run before the requested one.
const SURVEY: Duration = Duration::from_millis(500);

/// A graph, its blocks' costs, the machine, and given decisions.
#[derive(clap::Args)]
pub struct PlaceArgs {
    /// The graph file, for example graphs/atsc-rx.toml.
    #[arg(value_name = "GRAPH.toml")]
    graph: PathBuf,

    /// Set a parameter of the graph. Repeat the option for more parameters.
    #[arg(long, value_name = "NAME=VALUE")]
    set: Vec<String>,

    /// Plan for another machine: the name of a known machine, a machine file (TOML), or a folder
    /// with a copy of its /sys. A wrong name lists the known machines.
    #[arg(long, value_name = "NAME|FILE|FOLDER")]
    machine: Option<String>,

    /// Use measured costs from this file: a profile, or the output of `millstream --json graph
    /// plan`. The graph then does not run.
    #[arg(long, value_name = "FILE.json")]
    profile: Option<PathBuf>,

    /// How long to measure.
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = seconds,
          conflicts_with = "profile")]
    duration: f64,

    /// Keep the partitions and buffers of the plan in the graph file. Only place the blocks that it
    /// does not mention.
    #[arg(long)]
    keep: bool,

    /// Run a block on this CPU. Other blocks may run there, too. Repeat the option for more blocks.
    #[arg(long, value_name = "BLOCK=CPU", value_parser = inputs::pin)]
    pin: Vec<(String, usize)>,

    /// Most CPUs to use.
    #[arg(long, value_name = "N", value_parser = whole::<usize>(1..))]
    max_cpus: Option<usize>,

    /// Costs of the planner's model (TOML), for example measured ones; `planner::place::Costs`
    /// lists them.
    #[arg(long, value_name = "FILE.toml")]
    costs: Option<PathBuf>,
}

/// A plan with its inputs.
pub struct PlacedPlan {
    /// The graph and the machine.
    pub title: String,
    /// The machine.
    pub machine: String,
    /// The costs of the blocks.
    pub profile: Profile,
    /// The plan, and the model's prediction.
    pub placed: Placed,
    /// The comparison with the graph's own plan; empty if it has none.
    pub remarks: Vec<String>,
}

impl PlaceArgs {
    /// Measures or reads costs, and places the blocks.
    pub fn place(&self) -> anyhow::Result<PlacedPlan> {
        let file = GraphFile::read(&self.graph)?;
        let machine = TargetMachine::read(self.machine.as_deref())?;
        let hints = self.hints(&file, &machine)?;
        let (shape, profile, copies) = match &self.profile {
            Some(path) => {
                let (shape, profile) = inputs::profile(path, &file)?;
                (shape, profile, Vec::new())
            }
            None => measured(&file, &self.set, Duration::from_secs_f64(self.duration))?,
        };
        let mut placed = place::plan(&shape, &profile, &machine.topology, &hints)?;
        // The costs are this machine's.
        if self.machine.is_none() {
            placed.plan.ns_per_item = costs_to_keep(&file, &profile);
        }
        let own = own_plan(&file, &shape, &profile, &machine, &hints, &placed);
        let elsewhere = self.machine.is_some() && self.profile.is_none();
        let note = elsewhere.then(|| "note     the costs are this machine's".to_owned());
        let name = self.graph.file_stem().unwrap_or_default().to_string_lossy();
        Ok(PlacedPlan {
            title: format!("{name} on {}", machine.name),
            machine: machine.name,
            profile,
            placed,
            remarks: own.into_iter().chain(note).chain(copies).collect(),
        })
    }

    fn hints(&self, file: &GraphFile, machine: &TargetMachine) -> anyhow::Result<Hints> {
        let costs = match &self.costs {
            None => Costs::default(),
            Some(path) => {
                let text = millstream_flow::file::read_text(path)
                    .with_context(|| format!("cannot read --costs {}", path.display()))?;
                toml::from_str(&text).with_context(|| format!("cannot use {}", path.display()))?
            }
        };
        ensure!(self.max_cpus != Some(0), "--max-cpus is 0: give 1 or more");
        Ok(Hints {
            plan: if self.keep { file.plan().clone() } else { Plan::default() },
            pins: self.pin.iter().cloned().collect(),
            allowed: machine.allowed.clone(),
            max_cpus: self.max_cpus,
            unpinned: false,
            costs,
        })
    }
}

/// The placement for the blocks' costs in a short run. Keeps all of the graph's own plan but the
/// partitions.
pub fn surveyed(file: &GraphFile, set: &[String]) -> anyhow::Result<Plan> {
    let machine = TargetMachine::read(None)?;
    let (shape, profile, _) = measured(file, set, SURVEY)?;
    let hints = Hints {
        plan: Plan { partitions: Vec::new(), ..file.plan().clone() },
        allowed: machine.allowed.clone(),
        unpinned: true,
        ..Hints::default()
    };
    let plan = place::plan(&shape, &profile, &machine.topology, &hints)?.plan;
    Ok(Plan { ns_per_item: costs_to_keep(file, &profile), ..plan })
}

/// The costs that a plan keeps, to compare a run with them. Without blocks that were replaced, and
/// without those that wait in their calls for the rate of items: their work is not known.
pub fn costs_to_keep(file: &GraphFile, profile: &Profile) -> BTreeMap<String, f64> {
    let (registry, _) = block_types::registry();
    let mut without = file.rehearsed(&registry);
    without.extend(file.paced(&registry));
    profile.ns_per_item_of_each(&without)
}

/// Runs the graph on one thread for a while. Also returns the copies to other devices, in words.
fn measured(
    file: &GraphFile,
    set: &[String],
    duration: Duration,
) -> anyhow::Result<(Shape, Profile, Vec<String>)> {
    let (registry, monitors) = block_types::registry();
    let graph = file.build_rehearsal(&registry, set)?;
    let shape = Shape::of(&graph);
    let replaced = file.rehearsed(&registry);
    let without = match replaced.is_empty() {
        true => String::new(),
        false => {
            format!("; these blocks neither write nor receive meanwhile: {}", replaced.join(", "))
        }
    };
    output::note(format_args!(
        "millstream: running the graph for {} s to measure it{without}",
        duration.as_secs_f64()
    ));
    for choice in millstream_accel::choices() {
        output::note(format_args!("millstream: {choice}"));
    }
    let (profile, copies) = measure(graph, duration)?;
    let moved = profile.blocks.iter().any(|block| block.items() > 0);
    ensure!(
        moved,
        "no item passed through the graph during the measurement: give a longer --duration"
    );
    for trouble in SignalReport::all(&monitors).iter().filter_map(SignalReport::failure) {
        output::note(format_args!(
            "millstream: {trouble}; the blocks behind the receiver had little work, and the plan \
             is only right for that"
        ));
    }
    Ok((shape, profile, copies))
}

fn measure(graph: Graph, duration: Duration) -> anyhow::Result<(Profile, Vec<String>)> {
    interrupt::install();
    let plan = Plan::single(&graph, WaitMode::Park);
    let running = graph.start(&plan).context("cannot start the graph")?;
    let begun = Instant::now();
    let mut live = Live::seldom();
    // The first part fills rings and caches; it counts only if there is no more.
    let mut early = None;
    while !running.is_finished() && begun.elapsed() < duration && !interrupt::asked() {
        std::thread::sleep(Duration::from_millis(10));
        if early.is_none() && begun.elapsed() > duration / 8 {
            early = Some(running.profile());
        }
        live.show(Instant::now(), || {
            format!(
                "measuring  {:4.1} s of {:.1} s",
                begun.elapsed().as_secs_f64(),
                duration.as_secs_f64()
            )
        });
    }
    live.end();
    let all = running.profile();
    let seconds = begun.elapsed().as_secs_f64();
    let copies = crossings::lines(None, &running.snapshot(), seconds);
    let copies = copies.into_iter().map(|line| format!("copies   {line}")).collect();
    running.stopper().stop();
    running.wait()?;
    let later = early.map(|early| all.since(&early));
    let enough = |later: &Profile| later.blocks.iter().all(|block| block.calls >= 16);
    Ok((later.filter(enough).unwrap_or(all), copies))
}

/// The comparison with the plan in the graph file, if that specifies a partition.
fn own_plan(
    file: &GraphFile,
    shape: &Shape,
    profile: &Profile,
    machine: &TargetMachine,
    hints: &Hints,
    placed: &Placed,
) -> Option<String> {
    if file.plan().partitions.is_empty() || !hints.plan.partitions.is_empty() {
        return None;
    }
    let own = place::predict(shape, profile, &machine.topology, hints, file.plan()).ok()?;
    let ratio = own.ns_per_item / placed.prediction.ns_per_item;
    let compare = match ratio {
        ratio if ratio > 1.001 => format!("{:.1} % more time an item", (ratio - 1.0) * 100.0),
        ratio if ratio < 0.999 => format!("{:.1} % less time an item", (1.0 - ratio) * 100.0),
        _ => "as fast".to_owned(),
    };
    let count = own.partitions.len();
    Some(format!("by hand  the graph's own plan ({count} partitions): {compare} by the model"))
}
