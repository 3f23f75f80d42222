//! Plans stored by `tune`: their places, their use, and whether they still fit.

use crate::output::note;
use anyhow::Context;
use millstream_cpu::{Environment, Topology, folders};
use millstream_flow::Pins;
use millstream_flow::{GraphFile, Plan, Registry, Snapshot};
use millstream_planner::tune::drift::{self, Cost};
use millstream_planner::tune::{
    MachineDescription, Percent, PlanKey, PlanStore, RatioEstimate, StoredPlan,
};
use std::path::Path;

/// The place of one graph's plan on this machine.
pub struct PlanStoreEntry {
    /// The store of plans.
    pub store: PlanStore,
    /// The graph and the machine.
    pub key: PlanKey,
    /// This machine.
    pub machine: MachineDescription,
}

/// The user's store.
pub fn store() -> anyhow::Result<PlanStore> {
    Ok(PlanStore::of_user(folders::variable)?)
}

impl PlanStoreEntry {
    /// The place of the plan of `file` with these parameters.
    pub fn of(file: &GraphFile, registry: &Registry, set: &[String]) -> anyhow::Result<Self> {
        let structure = file.structure(registry, set)?;
        let topology = Topology::read(Path::new("/")).ok();
        let machine =
            MachineDescription::of(&Environment::read(Path::new("/"), ""), topology.as_ref());
        Ok(Self { store: store()?, key: PlanKey::of(&structure, &machine), machine })
    }

    /// Loads the stored plan, if it is compatible with the graph's own plan.
    pub fn load(&self, own: &Pins) -> anyhow::Result<Option<StoredPlan>> {
        let Some(record) = self.store.load(&self.key)? else { return Ok(None) };
        let path = self.store.path(&self.key);
        let why = if record.set_aside.is_empty() {
            own.broken_by(&record.plan).map(|key| format!("has its own `{key}`"))
        } else {
            (record.set_aside != own.to_toml()).then(|| "has another plan of its own now".into())
        };
        match why {
            None => Ok(Some(record)),
            Some(why) => anyhow::bail!(
                "the stored plan {} is not used because the graph {why}: run `millstream graph \
                 tune` again",
                path.display()
            ),
        }
    }
}

/// The plan to run by when none is given: the stored one, else the graph's own.
pub fn plan_for(
    file: &GraphFile,
    registry: &Registry,
    set: &[String],
) -> (Plan, Option<StoredPlan>) {
    let found = PlanStoreEntry::of(file, registry, set).and_then(|place| place.load(file.pins()));
    match found.context("cannot read the stored plan") {
        Ok(Some(record)) => {
            note(format_args!("{}", line(&record)));
            (record.plan.clone(), Some(record))
        }
        Ok(None) => (file.plan().clone(), None),
        Err(error) => {
            // Errors of the graph itself are reported when it is built.
            if file.structure(registry, set).is_ok() {
                note(format_args!("millstream: {}", crate::output::describe(&error)));
            }
            (file.plan().clone(), None)
        }
    }
}

fn line(record: &StoredPlan) -> String {
    let StoredPlan { gain, gain_low, gain_high, what, tuned_at, .. } = record;
    let gain = RatioEstimate { estimate: *gain, low: *gain_low, high: *gain_high, pairs: 0 };
    format!(
        "plan: stored by `millstream graph tune` at {tuned_at}, {} of the default ({what}); \
         --no-stored-plan runs the graph's own",
        Percent(gain)
    )
}

/// One line of advice when the costs of a run have changed.
pub fn advice(record: &StoredPlan, snapshot: &Snapshot, without: &[String]) -> Option<String> {
    let now = Cost::of(snapshot, without)?;
    let drift = drift::judge(record, now)?;
    Some(format!(
        "the blocks took {:.2} ns per item, {:.2} times the {:.2} ns when the plan was tuned (up \
         to {:.2} times is noise): run `millstream graph tune {}` again",
        now.ns_per_item, drift.ratio, record.ns_per_item, drift.tolerance, record.graph
    ))
}
