//! The plan of a run at its start, and the changes that adaptation may make.

use crate::output::Join;
use anyhow::{Context, anyhow};
use millstream_cpu::Topology;
use millstream_flow::Shape;
use millstream_flow::{Graph, GraphFile, Plan, Preset, WaitMode};
use millstream_planner::adapt::{AdaptPolicy, Adapter, Partitioner};
use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// The word that is not a preset, because it needs a run.
const MEASURED: &str = "measured";

/// A plan as a command line option.
#[derive(Clone, Debug, PartialEq)]
pub enum PlanArg {
    /// By a word.
    Word(Preset),
    /// The placement after a short run.
    Measured,
    /// From a file.
    File(PathBuf),
}

impl FromStr for PlanArg {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(match text {
            MEASURED => Self::Measured,
            _ => text.parse().map_or_else(|_| Self::File(text.into()), Self::Word),
        })
    }
}

/// A plan that is not yet fitted to its graph.
pub enum RequestedPlan {
    /// A complete plan.
    Given(Plan),
    /// By a word, with the rings of the graph's own plan.
    Word(Preset, Plan),
}

impl RequestedPlan {
    /// Reads the named plan, or measures the graph.
    pub fn read(said: &PlanArg, file: &GraphFile, set: &[String]) -> anyhow::Result<Self> {
        Ok(match said {
            PlanArg::Word(preset) => Self::Word(*preset, file.plan().clone()),
            PlanArg::Measured => Self::Given(crate::verbs::graph::placed::surveyed(file, set)?),
            PlanArg::File(path) => Self::Given(read(path)?),
        })
    }

    /// A caveat about the requested plan.
    pub fn caveat(&self, adapts: bool) -> Option<&'static str> {
        let blind = matches!(self, Self::Word(Preset::Auto, _)) && !adapts;
        blind.then_some(
            "--plan auto follows the estimates of the block types, because no cost was measured; \
             --plan measured runs the graph for a moment first, --adapt moves blocks by their \
             costs, `millstream graph tune` finds and stores a plan",
        )
    }

    /// The plan for this graph.
    pub fn of(self, graph: &Graph) -> Plan {
        match self {
            Self::Given(plan) => plan,
            Self::Word(preset, own) => {
                let partitions = preset.plan(graph, WaitMode::Park, &own.buffers).partitions;
                Plan { partitions, ..own }
            }
        }
    }
}

fn read(path: &Path) -> anyhow::Result<Plan> {
    let text = millstream_flow::file::read_text(path).map_err(|error| {
        let presets = Preset::ALL.iter().map(|preset| preset.name());
        let (path, words) = (path.display(), presets.chain([MEASURED]).join(", "));
        anyhow!(
            "cannot read the plan file {path}: {error}; instead of a file you can name a plan: \
             {words}"
        )
    })?;
    Plan::from_toml(&text).with_context(|| format!("cannot use the plan file {}", path.display()))
}

/// Creates the adaptation of `graph`, which runs by `plan`.
pub fn adapter(graph: &Graph, plan: &Plan) -> anyhow::Result<Adapter> {
    let topology =
        Topology::read(Path::new("/")).context("cannot read the CPUs of this machine")?;
    let allowed = millstream_cpu::thread::allowed_cpus().ok();
    let advisor = Partitioner::beside(plan, Shape::of(graph), topology, allowed);
    Ok(Adapter::new(AdaptPolicy::default(), advisor))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_by_estimates_says_so() {
        let told =
            |preset, adapts| RequestedPlan::Word(preset, Plan::default()).caveat(adapts).is_some();
        assert!(told(Preset::Auto, false));
        assert!(!told(Preset::Auto, true) && !told(Preset::Single, false));
    }

    #[test]
    fn a_word_is_a_preset_and_all_else_a_file() {
        let parse = |text: &str| text.parse::<PlanArg>().unwrap();
        assert_eq!(parse("per-block"), PlanArg::Word(Preset::PerBlock));
        assert_eq!(parse("measured"), PlanArg::Measured);
        assert_eq!(parse("./single"), PlanArg::File("./single".into()));
        assert_eq!(parse("plan.toml"), PlanArg::File("plan.toml".into()));
    }
}
