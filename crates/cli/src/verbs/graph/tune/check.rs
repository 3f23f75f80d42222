//! The tuner against an exhaustive sweep.

use super::progress;
use crate::live::Live;
use millstream_flow::Plan;
use millstream_planner::tune::{
    ExhaustiveSearch, Percent, PlanMeasurer, RatioEstimate, Settings, Space, Tuned, sweep,
};

/// Least ratio of the tuner's plan to the best of all.
const SHARE: f64 = 0.97;

crate::results! {
    /// The tuner's plan against all plans of the coarse grid.
    pub struct CheckedTuning<'a> {
        /// Plans of the grid.
        plans: usize,
        /// Runs of them.
        measured: usize,
        /// Time that they took, seconds.
        spent_s: f64,
        /// The best of them.
        best: &'a Plan,
        /// What it is.
        what: &'a str,
        /// The best over the default.
        best_to_default: RatioEstimate,
        /// The tuner's over the best.
        tuned_to_best: RatioEstimate,
        /// The tuner's over the default.
        tuned_to_default: RatioEstimate,
        /// Whether the tuner's is good enough by the estimates.
        holds: bool,
        /// Whether it is by the whole interval.
        is_sure: bool,
    }
}

/// The result of the sweep.
pub struct Check {
    found: ExhaustiveSearch,
    /// Whether the tuner's plan is good enough by the estimates.
    holds: bool,
    /// Whether it is good enough by the whole interval.
    is_sure: bool,
}

/// Measures everything.
pub fn run(
    trial: &mut dyn PlanMeasurer,
    space: &Space,
    default: &Plan,
    tuned: &Tuned,
    settings: Settings,
) -> anyhow::Result<Check> {
    let mut live = Live::seldom();
    let plans = (default, &tuned.plan);
    let found =
        sweep(trial, space, plans, settings, &mut |now| progress::show(&mut live, now, false))?;
    live.end();
    let Some(found) = found else {
        anyhow::bail!("interrupted before --check had a result: run the command again")
    };
    let is_sure = found.tuned_to_best.low >= SHARE;
    let holds = found.tuned_to_best.estimate >= SHARE && found.tuned_to_default.high >= 1.0;
    Ok(Check { found, holds, is_sure })
}

impl Check {
    /// The result for the document.
    pub fn document(&self) -> CheckedTuning<'_> {
        let found = &self.found;
        CheckedTuning {
            plans: found.plans,
            measured: found.measured,
            spent_s: found.spent.as_secs_f64(),
            best: &found.best,
            what: &found.what,
            best_to_default: found.to_default,
            tuned_to_best: found.tuned_to_best,
            tuned_to_default: found.tuned_to_default,
            holds: self.holds,
            is_sure: self.is_sure,
        }
    }

    /// The result as text.
    pub fn lines(&self) -> String {
        format!(
            "check: all {} plans of the coarse grid by {} runs in {:.0} s\n       \
             the best of them: {}\n       \
             over each other by {} fresh rounds of all three, in turns:\n       \
             the best over the default        {}\n       \
             the tuner's over the default     {}\n       \
             the tuner's over the best        {}\n       {}\n",
            self.found.plans,
            self.found.measured,
            self.found.spent.as_secs_f64(),
            self.found.what,
            self.found.to_default.pairs.max(self.found.tuned_to_default.pairs),
            Percent(self.found.to_default),
            Percent(self.found.tuned_to_default),
            Percent(self.found.tuned_to_best),
            match (self.holds, self.is_sure) {
                (true, true) =>
                    "holds beyond noise: not worse than the default, not 3 % behind the best",
                (true, false) =>
                    "holds by the estimates: not worse than the default, not 3 % behind the best",
                _ => "DOES NOT HOLD",
            }
        )
    }

    /// The reason why the verb fails.
    pub fn failure(&self) -> Option<String> {
        (!self.holds).then(|| {
            "the tuner's plan is worse than the default, or 3 % behind the best of a sweep; a \
             larger --duration or a quieter machine may help"
                .to_owned()
        })
    }
}
