//! One search, from the graph to the stored plan.

use super::report::{self, TuningReport};
use super::{Args, check, picture, progress, settings};
use crate::interrupt;
use crate::live::Live;
use crate::numbers::allowed_cpus;
use crate::output::{Report, describe, note, now};
use crate::stdout;
use crate::stored::PlanStoreEntry;
use crate::verbs::graph::placed::costs_to_keep;
use anyhow::Context;
use millstream_cpu::{CpuSet, Topology};
use millstream_flow::{GraphFile, Pins, Plan, Registry, Shape, WaitMode};
use millstream_planner::place::{Hints, plan};
use millstream_planner::tune::{Rehearsal, Settings, Space, StoredPlan, Tuned, tune};
use millstream_stats::median;
use millstream_stats::paired::pooled_noise;
use std::path::Path;
use std::time::{Duration, Instant};

/// Tunes `file`.
pub fn run(
    args: &Args,
    path: &Path,
    file: &GraphFile,
    registry: &Registry,
) -> anyhow::Result<Report> {
    // Before the work.
    let out = args.out.as_deref().map(stdout::for_data).transpose()?;
    for path in out.iter().chain(&args.picture) {
        args.force.check(path)?;
    }
    let place =
        if args.no_store { None } else { Some(PlanStoreEntry::of(file, registry, &args.set)?) };
    if let Some(place) = &place {
        place.store.check().context("no plan could be stored (--no-store searches without)")?;
    }
    interrupt::install();
    let started = Instant::now();
    let allowed = allowed_cpus()?;
    let pins = if args.free { Pins::default() } else { file.pins().clone() };
    let graph = file.build_rehearsal(registry, &args.set)?;
    let default = Space::spell_out(file.plan(), &graph, &allowed)?;
    let topology = Topology::read(Path::new("/")).ok();

    let budget = Duration::from_secs_f64(args.duration);
    let prepared = (budget, args.objective);
    let asked = interrupt::asked;
    let mut trial = Rehearsal::prepare(file, registry, &args.set, &default, prepared, &asked)?;
    let profile = &trial.profile;
    let costs = |block: &str| profile.block(block).map_or(0.0, |cost| cost.busy_ns as f64);
    let mut space = Space::of(&graph, pins, costs, topology.as_ref(), &allowed)?;
    drop(graph);
    if args.spin {
        space.waits.push(WaitMode::Spin);
    }
    suggest(&mut space, file, &trial, topology.as_ref(), &allowed);

    let graph = path.display().to_string();
    note(report::remarks(file, &space, &trial));
    let start = place.as_ref().and_then(|place| stored(place, file, args.free));
    let settings = Settings {
        budget: budget.saturating_sub(started.elapsed()),
        repeats: args.repeat.into(),
        seed: args.seed,
        ..Settings::default()
    };
    let mut live = Live::seldom();
    let start_plan = start.as_ref().map(|record| &record.plan);
    let tuned = tune(&mut trial, &space, &default, start_plan, settings, &mut |now| {
        progress::show(&mut live, now, true)
    })?;
    live.end();
    let took = started.elapsed();
    anyhow::ensure!(
        !tuned.is_interrupted,
        "interrupted before the search had a result, so no plan is stored: run the command again"
    );

    let stored = match &place {
        Some(place) => keep(place, &graph, &tuned, &trial, file, args.free, start.as_ref())?,
        None => "nothing is stored".to_owned(),
    };
    if let Some(path) = &out {
        args.force.write(path, with_costs(&tuned.plan, file, &trial).to_toml())?;
    }
    if let Some(path) = &args.picture {
        args.force.write(path, picture::draw(&graph, trial.objective.unit(), &tuned))?;
    }
    let mut check = None;
    if args.check {
        let settings =
            Settings { budget: Duration::from_secs_f64(args.check_duration), ..settings };
        check = Some(check::run(&mut trial, &space, &default, &tuned, settings)?);
    }
    let machine = settings::advice(Path::new("/"), &allowed);
    let (trial, tuned) = (&trial, &tuned);
    Ok(TuningReport { graph: &graph, trial, tuned, stored, check, took, machine }.report())
}

/// The placements for one core, two, and so on.
fn suggest(
    space: &mut Space,
    file: &GraphFile,
    trial: &Rehearsal,
    topology: Option<&Topology>,
    allowed: &CpuSet,
) {
    let (Some(topology), profile) = (topology, &trial.profile) else { return };
    let shape = Shape::of_profile(profile);
    let own = if space.pins.is_empty() { Plan::default() } else { file.plan().clone() };
    for cpus in 1..=allowed.len().min(8) {
        let hints = Hints {
            plan: own.clone(),
            allowed: Some(allowed.clone()),
            max_cpus: Some(cpus),
            unpinned: true,
            ..Hints::default()
        };
        // Without a placement, the other layouts remain.
        if let Ok(placed) = plan(&shape, profile, topology, &hints) {
            space.suggest(&format!("the partitioner's for {cpus}"), &placed.plan);
        }
    }
}

/// The stored plan, if the search may start from it.
fn stored(place: &PlanStoreEntry, file: &GraphFile, is_free: bool) -> Option<StoredPlan> {
    match place.load(file.pins()) {
        Ok(record) => {
            let mut record = record.filter(|record| is_free || record.set_aside.is_empty());
            // Plans are compared: the costs of an earlier search are no part of what is tried.
            record.iter_mut().for_each(|record| record.plan.ns_per_item.clear());
            record
        }
        Err(error) => {
            note(format_args!("millstream: {}", describe(&error)));
            None
        }
    }
}

/// The plan, with the costs of the blocks if the search measured them.
fn with_costs(plan: &Plan, file: &GraphFile, trial: &Rehearsal) -> Plan {
    Plan { ns_per_item: costs_to_keep(file, &trial.profile), ..plan.clone() }
}

/// Stores a better plan, removes one that has become worse; returns the change in words.
fn keep(
    place: &PlanStoreEntry,
    graph: &str,
    tuned: &Tuned,
    trial: &Rehearsal,
    file: &GraphFile,
    is_free: bool,
    start: Option<&StoredPlan>,
) -> anyhow::Result<String> {
    let Tuned { plan, gain, is_better, what, figure, .. } = tuned;
    if !is_better {
        return match start {
            None => Ok("nothing is stored".to_owned()),
            Some(_) if gain.high < 1.0 => {
                place.store.forget(&place.key)?;
                Ok("the stored plan is now worse than the default, and was removed".to_owned())
            }
            Some(_) => Ok("the stored plan stays: no other plan is better beyond noise".to_owned()),
        };
    }
    let costs: Vec<_> = trial.costs(plan).collect();
    let logs: Vec<f64> = costs.iter().map(|cost| cost.ns_per_item.ln()).collect();
    let items: Vec<f64> = costs.iter().map(|cost| cost.items as f64).collect();
    let record = StoredPlan {
        graph: graph.to_owned(),
        machine: place.machine.short().to_owned(),
        tuned_at: now(),
        what: what.clone(),
        unit: trial.objective.unit().to_owned(),
        figure: *figure,
        gain: gain.estimate,
        gain_low: gain.low,
        gain_high: gain.high,
        ns_per_item: median(&logs).exp(),
        ns_per_item_spread: pooled_noise([logs.as_slice()], 0.01),
        items: median(&items) as u64,
        set_aside: if is_free { file.pins().to_toml() } else { String::new() },
        plan: with_costs(plan, file, trial),
    };
    let path = place.store.save(&place.key, &record)?;
    Ok(format!("stored in {}", path.display()))
}
