//! The long way round: every plan of a space, to judge the tuner by.

use super::duel::Duel;
use super::race::Runner;
use super::search::STAGES;
use super::session::{Halt, Session, Settings, Trial, TuneError, Watch};
use super::space::{Candidate, Space, Stage};
use super::statistics::Interval;
use crate::plan::Plan;
use std::time::Duration;

/// So many of the fastest are measured again.
const FINALISTS: usize = 16;

/// The default is measured again after so many plans.
const PLANS_PER_BASE: usize = 4;

/// What an exhaustive sweep found.
#[derive(Clone, Debug)]
pub struct Sweep {
    /// Plans that were measured.
    pub plans: usize,
    /// The best of them.
    pub best: Plan,
    /// What it is, in words.
    pub what: String,
    /// The best over the default.
    pub to_default: Interval,
    /// The tuner's plan over the best, by pairs that had no part in choosing it.
    pub tuned_to_best: Interval,
    /// The tuner's plan over the default, likewise.
    pub tuned_to_default: Interval,
    /// Measurements.
    pub measured: usize,
    /// Time they took.
    pub spent: Duration,
}

/// Measures every combination of the choices of the [coarse](Space::coarse) space once, the fastest
/// of them again in a race, and the best against `tuned`. The budget does not count; `watch` may
/// end it, which gives `None`.
///
/// # Errors
/// [`TuneError`]: the default or the tuner's plan cannot be measured.
pub fn sweep<'a>(
    trial: &'a mut dyn Trial,
    space: &Space,
    (default, tuned): (&Plan, &Plan),
    settings: Settings,
    watch: &'a mut Watch<'a>,
) -> Result<Option<Sweep>, TuneError> {
    let mut session = Session::new(trial, settings, watch);
    session.is_final = true;
    match walk(&mut session, space, default, tuned) {
        Ok(sweep) => Ok(Some(sweep)),
        Err(Halt::Error(error)) => Err(error),
        Err(Halt::Asked | Halt::Budget) => Ok(None),
    }
}

fn walk(session: &mut Session, space: &Space, default: &Plan, tuned: &Plan) -> Result<Sweep, Halt> {
    let mut all = everything(&space.coarse(), default);
    let plans = all.len();
    session.random.shuffle(&mut all);
    let (mut figures, mut base) = (Vec::new(), 0.0);
    for (at, candidate) in all.into_iter().enumerate() {
        // A machine's speed wanders in the time that a sweep takes.
        if at % PLANS_PER_BASE == 0 {
            base = session.measure_default(default)?;
        }
        // A plan that fails is out of the sweep as it would be out of a race.
        if let Ok(figure) = session.measure(&candidate.what, &candidate.plan)? {
            figures.push((figure - base, candidate));
        }
    }
    figures.sort_by(|a, b| b.0.total_cmp(&a.0));
    session.stage = Stage::Final;
    let finalists = figures.into_iter().take(FINALISTS);
    let mut field: Vec<Runner> =
        finalists.map(|(_, candidate)| Runner::new(candidate, false, default)).collect();
    session.race(&mut field, default)?;
    let best = field
        .into_iter()
        .filter(|runner| runner.out.is_none())
        .max_by(|a, b| a.estimate().total_cmp(&b.estimate()));
    let Candidate { what, plan, .. } = match best {
        Some(best) => best.candidate,
        None => Candidate { what: "the default".into(), plan: default.clone(), size_bytes: None },
    };
    let mut meet = |one: (&str, &Plan), other: (&str, &Plan)| -> Result<Interval, Halt> {
        if one.1 == other.1 {
            return Ok(Interval::SAME);
        }
        let mut duel = Duel::default();
        for _ in 0..2 * session.settings.repeats {
            if let Err(error) = session.pair(one, other, &mut duel)? {
                return Err(Halt::Error(TuneError::Default(error)));
            }
        }
        Ok(duel.interval(session.settings.confidence))
    };
    let (ours, theirs, base) =
        (("the tuner's plan", tuned), (what.as_str(), &plan), ("the default", default));
    let tuned_to_best = meet(ours, theirs)?;
    let tuned_to_default = meet(ours, base)?;
    let to_default = meet(theirs, base)?;
    let (measured, spent) = (session.measured, session.spent);
    Ok(Sweep {
        plans,
        best: plan,
        what,
        to_default,
        tuned_to_best,
        tuned_to_default,
        measured,
        spent,
    })
}

/// The default and all that can be made of it with one choice of each stage.
pub(super) fn everything(space: &Space, default: &Plan) -> Vec<Candidate> {
    let (what, plan) = (String::new(), default.clone());
    let mut all = vec![Candidate { what, plan, size_bytes: None }];
    for stage in STAGES {
        let more: Vec<Candidate> = all
            .iter()
            .flat_map(|base| {
                let made = space.candidates(stage, &base.plan, false).into_iter();
                made.map(|one| Candidate {
                    what: format!("{}{stage}: {}, ", base.what, one.what),
                    ..one
                })
            })
            .collect();
        all.extend(more);
    }
    let mut seen: Vec<Plan> = Vec::new();
    all.retain_mut(|candidate| {
        candidate.what.truncate(candidate.what.len().saturating_sub(2));
        let is_new = !seen.contains(&candidate.plan);
        if is_new {
            seen.push(candidate.plan.clone());
        }
        is_new
    });
    all
}
