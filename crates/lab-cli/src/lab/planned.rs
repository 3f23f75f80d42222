//! A plan and its run, as command line options.

use crate::output::now;
use anyhow::Context;
use millstream_measure::design::run::RunResult;
use millstream_measure::design::{MeasurementPlan, StartResult};
use millstream_measure::store::{Begun, Store};
use std::path::PathBuf;

/// A plan, and the name of its run.
#[derive(clap::Args)]
pub struct PlanArgs {
    /// The measurement plan (TOML).
    pub plan: PathBuf,

    /// Name of the run. The default is the name in the plan with the time.
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
}

/// A run to be made.
pub struct Planned {
    pub plan: MeasurementPlan,
    /// The run's name.
    pub name: String,
    /// Its known results.
    pub known: StartResult,
    /// The new run; `None` for one that is resumed.
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
        anyhow::ensure!(
            !name.contains('/') && !name.is_empty(),
            "--name is {name}: give a name without a slash"
        );
        let command = std::env::args_os().map(|word| word.to_string_lossy().into_owned());
        let folder = std::env::current_dir().context("cannot find the current folder")?;
        let (run, command) = (name.clone(), command.collect());
        let begun = Some(Begun { run, command, folder, plan: text });
        Ok(Planned { plan, name, known: StartResult::default(), begun })
    }
}

crate::results! {
    /// A run of a plan.
    pub struct PlanResults<'a> {
        /// Its starts, its figures, and why it ended.
        #[serde(flatten)]
        run: &'a RunResult,
    }
}

/// The reason why a run is incomplete, and how to resume it if it is stored.
pub fn verdict(outcome: &RunResult, is_asked: bool, is_stored: bool) -> Option<String> {
    let failed = outcome.failures.len();
    // A start with some records is not repeated.
    let (is_missing, what) = match is_asked {
        true => (true, "interrupted before the plan was done".to_owned()),
        false if failed == 0 => return None,
        false => (
            outcome.failures.iter().any(|failure| !failure.partial),
            format!("{failed} parts of the plan gave no record, see above"),
        ),
    };
    let hint = match is_stored && is_missing {
        true => format!("; `millstream-lab lab resume '{}'` continues the run", outcome.run),
        false => String::new(),
    };
    Some(what + &hint)
}
