//! A plan and the run that carries it out, as the command line says them.

use crate::output::now;
use anyhow::Context;
use millstream_lab::design::Plan;
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

impl PlanArgs {
    /// Reads the plan, and names the run.
    pub fn read(&self) -> anyhow::Result<(Plan, String)> {
        let text = std::fs::read_to_string(&self.plan)
            .with_context(|| format!("cannot read the plan {}", self.plan.display()))?;
        let plan = Plan::parse(&text)?;
        let name = self.name.clone().unwrap_or_else(|| format!("{} {}", plan.name, now()));
        anyhow::ensure!(!name.contains('/') && !name.is_empty(), "--name {name}: without a slash");
        Ok((plan, name))
    }
}
