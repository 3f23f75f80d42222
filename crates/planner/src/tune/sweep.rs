//! The exhaustive search: every plan of a space, to evaluate the tuner.

use super::race::Runner;
use super::session::{EarlyEnd, PlanMeasurer, Settings, TuneError, TuningSession, Watch};
use super::space::{Candidate, Space, TuningStage};
use millstream_flow::plan::Plan;
use millstream_stats::RatioEstimate;
use millstream_stats::paired::paired;
use std::time::Duration;

/// The number of the fastest plans that enter the rounds.
const FINALISTS: usize = 8;
/// Rounds of the final comparison, in repeats of a paired test.
const MEETINGS: usize = 3;
/// Measurements of the default before anything else, to measure their duration.
const FIRST: usize = 2;

/// The result of an exhaustive search.
#[derive(Clone, Debug)]
pub struct ExhaustiveSearch {
    /// Plans that were measured.
    pub plans: usize,
    /// The best of them.
    pub best: Plan,
    /// A description of it.
    pub what: String,
    /// The best over the default.
    pub to_default: RatioEstimate,
    /// The tuner's plan over the best.
    pub tuned_to_best: RatioEstimate,
    /// The tuner's plan over the default.
    pub tuned_to_default: RatioEstimate,
    /// Measurements.
    pub measured: usize,
    /// Time they took.
    pub spent: Duration,
}

/// Measures every combination of the choices of the [coarse](Space::coarse) space at least once, by
/// successive halving, and compares the best with `tuned` and `default`. The lengths of the first
/// short runs are chosen so that halving ends in the budget, as far as possible; the rounds and the
/// final comparison take their own time. `watch` may end it, which gives `None`.
///
/// The best among a thousand was also lucky: the figures by which it was chosen would overestimate
/// it. So the three intervals come from rounds after the choice, in which each of the three plans
/// is measured once, in random order.
///
/// # Errors
/// [`TuneError`]: the default or the tuner's plan cannot be measured.
pub fn sweep<'a>(
    trial: &'a mut dyn PlanMeasurer,
    space: &Space,
    (default, tuned): (&Plan, &Plan),
    settings: Settings,
    watch: &'a mut Watch<'a>,
) -> Result<Option<ExhaustiveSearch>, TuneError> {
    let mut session = TuningSession::new(trial, settings, watch);
    session.is_final = true;
    match walk(&mut session, space, default, tuned) {
        Ok(sweep) => Ok(Some(sweep)),
        Err(EarlyEnd::Error(error)) => Err(error),
        Err(EarlyEnd::Asked | EarlyEnd::Budget) => Ok(None),
    }
}

fn walk(
    session: &mut TuningSession,
    space: &Space,
    default: &Plan,
    tuned: &Plan,
) -> Result<ExhaustiveSearch, EarlyEnd> {
    session.stage = TuningStage::Together;
    let all = space.coarse().combinations(default);
    let plans = all.len();
    for _ in 0..FIRST {
        session.look_at_default(default, None)?;
    }
    let share = session.share_for(plans, session.settings.budget);
    let (finalists, _) = session.sift(Duration::MAX, all, default, share, FINALISTS)?;
    session.stage = TuningStage::Final;
    let mut field: Vec<Runner> =
        finalists.into_iter().map(|candidate| Runner::new(candidate, false, default)).collect();
    session.race(&mut field, default)?;
    let best = field
        .into_iter()
        .filter(|runner| runner.out.is_none())
        .max_by(|a, b| a.estimate().total_cmp(&b.estimate()));
    let Candidate { what, plan: best, .. } = match best {
        Some(best) => best.candidate,
        None => Candidate { what: String::new(), plan: default.clone(), size_bytes: None },
    };
    let what = if best == *default { "the default".to_owned() } else { what };
    let [to_default, tuned_to_best, tuned_to_default] = meet(session, default, &best, tuned)?;
    let (measured, spent) = (session.measured, session.spent);
    Ok(ExhaustiveSearch {
        plans,
        best,
        what,
        to_default,
        tuned_to_best,
        tuned_to_default,
        measured,
        spent,
    })
}

/// Returns the ratios best over default, tuned over best, tuned over default.
fn meet(
    session: &mut TuningSession,
    default: &Plan,
    best: &Plan,
    tuned: &Plan,
) -> Result<[RatioEstimate; 3], EarlyEnd> {
    let mut plans: Vec<(&str, &Plan)> = vec![("the default", default)];
    for one in [("the best of the sweep", best), ("the tuner's plan", tuned)] {
        if plans.iter().all(|(_, plan)| *plan != one.1) {
            plans.push(one);
        }
    }
    let mut figures = vec![Vec::new(); plans.len()];
    if plans.len() > 1 {
        for _ in 0..MEETINGS * session.settings.repeats {
            let mut order: Vec<usize> = (0..plans.len()).collect();
            session.random.shuffle(&mut order);
            for at in order {
                let figure = session.look(plans[at].0, plans[at].1, None)?;
                figures[at]
                    .push(figure.map_err(|error| EarlyEnd::Error(TuneError::Default(error)))?);
            }
        }
    }
    let of = |plan: &Plan| plans.iter().position(|(_, other)| *other == plan).expect("it met");
    let ratio = |one: &Plan, other: &Plan| {
        if one == other {
            return RatioEstimate::SAME;
        }
        let pairs = figures[of(one)].iter().zip(&figures[of(other)]);
        let ratios: Vec<f64> = pairs.map(|(one, other)| one - other).collect();
        paired(&ratios, session.settings.confidence)
    };
    Ok([ratio(best, default), ratio(tuned, best), ratio(tuned, default)])
}
