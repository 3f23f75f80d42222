//! A plan and the run that carries it out, as the command line says them.

use crate::output::now;
use anyhow::Context;
use millstream_measure::design::run::RunResult;
use millstream_measure::design::{MeasurementPlan, StartResult};
use millstream_measure::store::{Begun, Store};
use std::path::PathBuf;

/// A plan, and the name of its run.
#[derive(clap::Args)]
pub struct PlanArgs {
    /// The plan (TOML).
    plan: PathBuf,

    /// Name of the run; by default the plan's with the time.
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
}

/// A run that is to be carried out.
pub struct Planned {
    pub plan: MeasurementPlan,
    /// The run's name.
    pub name: String,
    /// What is known of it already.
    pub known: StartResult,
    /// What is to be begun; none of a run that is taken up.
    pub begun: Option<Begun>,
}

impl Planned {
    /// Begins the run in the store, when nothing else can fail: its name is taken from then on.
    pub fn begin(&mut self, store: &mut Store) -> anyhow::Result<()> {
        Ok(self.begun.take().map_or(Ok(()), |begun| store.begin(&begun))?)
    }
}

impl PlanArgs {
    /// Reads the plan and names the run.
    pub fn read(&self) -> anyhow::Result<Planned> {
        let text = std::fs::read_to_string(&self.plan)
            .with_context(|| format!("cannot read the plan {}", self.plan.display()))?;
        let plan = MeasurementPlan::parse(&text)?;
        let name = self.name.clone().unwrap_or_else(|| format!("{} {}", plan.name, now()));
        anyhow::ensure!(!name.contains('/') && !name.is_empty(), "--name {name}: without a slash");
        let command = std::env::args_os().map(|word| word.to_string_lossy().into_owned());
        let folder = std::env::current_dir().context("the current folder")?;
        let (run, command) = (name.clone(), command.collect());
        let begun = Some(Begun { run, command, folder, plan: text });
        Ok(Planned { plan, name, known: StartResult::default(), begun })
    }
}

/// Why a run is not what its plan wanted, and how it is taken up where it is in a store.
pub fn verdict(outcome: &RunResult, is_asked: bool, is_stored: bool) -> Option<String> {
    let failed = outcome.failures.len();
    // A start that gave something is not made again.
    let (is_missing, what) = match is_asked {
        true => (true, "ended before the plan was".to_owned()),
        false if failed == 0 => return None,
        false => (
            outcome.failures.iter().any(|failure| !failure.partial),
            format!("{failed} parts of the plan gave nothing, see above"),
        ),
    };
    let hint = match is_stored && is_missing {
        true => format!("; `millstream lab resume '{}'` goes on", outcome.run),
        false => String::new(),
    };
    Some(what + &hint)
}
