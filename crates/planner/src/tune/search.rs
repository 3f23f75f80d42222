//! The search: stage by stage, as long as there is time and something to gain.

use super::log::{AttemptResult, PlanAttempt};
use super::paired_test::PairedTest;
use super::race::{self, Runner};
use super::session::{EarlyEnd, PlanMeasurer, Settings, TuneError, TuningSession, Watch};
use super::space::{Candidate, Space, TuningStage};
use millstream_flow::plan::Plan;
use millstream_stats::{RatioEstimate, median};
use std::time::Duration;

/// The stages in order: the most important first; a later choice is made for the earlier ones.
pub(super) const STAGES: [TuningStage; 6] = [
    TuningStage::Layout,
    TuningStage::Batch,
    TuningStage::Inside,
    TuningStage::Between,
    TuningStage::Wait,
    TuningStage::Cpus,
];
/// Times through the stages at most; from the second on, sizes are refined.
const PASSES_MAX: usize = 3;
/// Share of the search's time for choices that are made together.
const TOGETHER: f64 = 0.45;
/// Share of a measurement that a short run takes.
const GLANCE: f64 = 0.25;
/// The number of a sifted field that enters the rounds.
const RACERS: usize = 6;
/// The size from which a field without order is sifted before its rounds.
const CROWD: usize = 10;

/// The result of a tuning.
#[derive(Clone, Debug)]
pub struct Tuned {
    /// The plan to use: the default, unless another one was better beyond noise.
    pub plan: Plan,
    /// A description of the plan.
    pub what: String,
    /// The best plan that was found, over the default, by pairs of the last paired test. When its
    /// interval includes 1, `plan` is the default.
    pub gain: RatioEstimate,
    /// Whether `plan` differs from the default.
    pub is_better: bool,
    /// Whether the user ended it, so there is no decision.
    pub is_interrupted: bool,
    /// Median figure of `plan` in the last paired test, or of the default if there was no test.
    pub figure: f64,
    /// Everything that was tried.
    pub attempts: Vec<PlanAttempt>,
    /// Combinations of all choices that were evaluated together, and their total number.
    pub together: (usize, usize),
    /// Measurements.
    pub measured: usize,
    /// Time they took.
    pub spent: Duration,
}

/// Searches `space` from `default`, or from `start` if that is not worse in the first rounds.
///
/// Both plans have every block in a partition: [`Space::spell_out`]. `watch` is called before each
/// measurement and may end the search by returning `false`.
///
/// # Errors
/// [`TuneError`]: the default cannot be measured, or the budget is too short for a verdict.
pub fn tune<'a>(
    trial: &'a mut dyn PlanMeasurer,
    space: &Space,
    default: &Plan,
    start: Option<&Plan>,
    settings: Settings,
    watch: &'a mut Watch<'a>,
) -> Result<Tuned, TuneError> {
    let session = TuningSession::new(trial, settings, watch);
    let mut search = Search {
        session,
        space,
        default,
        plan: default.clone(),
        words: Vec::new(),
        tried: Vec::new(),
        again: None,
        together: (0, 0),
    };
    let first = search.session.look_at_default(default, None);
    let first = match first.and_then(|figure| search.check_budget().map(|()| figure)) {
        Ok(first) => first,
        Err(EarlyEnd::Error(error)) => return Err(error),
        Err(EarlyEnd::Budget | EarlyEnd::Asked) => return Ok(search.interrupted(0.0)),
    };
    match search.walk(start) {
        Ok(()) | Err(EarlyEnd::Budget) => {}
        Err(EarlyEnd::Asked) => return Ok(search.interrupted(first)),
        Err(EarlyEnd::Error(error)) => return Err(error),
    }
    search.finish(first)
}

struct Search<'a, 'b> {
    session: TuningSession<'a>,
    space: &'b Space,
    default: &'b Plan,
    /// The current plan.
    plan: Plan,
    /// The changes that led to it.
    words: Vec<String>,
    /// Plans that have clearly lost.
    tried: Vec<Plan>,
    /// The stored plan, if its first rounds gave no clear result: it was better once.
    again: Option<Candidate>,
    together: (usize, usize),
}

impl Search<'_, '_> {
    fn check_budget(&self) -> Result<(), EarlyEnd> {
        let (each, needed) = (self.session.each(), self.session.final_measurements());
        // There must be time to choose.
        let least = each * u32::try_from(2 * needed).unwrap_or(u32::MAX);
        let budget = self.session.settings.budget;
        if least <= budget {
            return Ok(());
        }
        Err(EarlyEnd::Error(TuneError::Budget { budget, each, needed, least }))
    }

    fn walk(&mut self, start: Option<&Plan>) -> Result<(), EarlyEnd> {
        if let Some(plan) = start.filter(|plan| **plan != *self.default) {
            let what = "the stored plan".to_owned();
            let candidate = Candidate { what, plan: plan.clone(), size_bytes: None };
            self.stage(TuningStage::Start, vec![candidate])?;
        }
        self.together()?;
        for pass in 0..PASSES_MAX {
            let before = self.plan.clone();
            for stage in STAGES {
                let mut candidates = self.space.candidates(stage, &self.plan, false);
                if pass > 0 {
                    let fine = self.space.candidates(stage, &self.plan, true).into_iter();
                    let new: Vec<_> =
                        fine.filter(|one| candidates.iter().all(|o| o.plan != one.plan)).collect();
                    candidates.extend(new);
                }
                candidates.retain(|candidate| !self.tried.contains(&candidate.plan));
                self.stage(stage, candidates)?;
            }
            // The first pass has not refined anything.
            if pass > 0 && self.plan == before {
                break;
            }
        }
        Ok(())
    }

    /// Sifts combinations first: choices that depend on each other are not found one by one, such
    /// as a wait mode that is better only with some sizes of rings, or a size of batches only with
    /// some partitions. Takes all combinations of the coarse space, or as large a sample as there
    /// is time for.
    fn together(&mut self) -> Result<(), EarlyEnd> {
        self.session.stage = TuningStage::Together;
        let coarse = Space { cpu_orders: self.space.cpu_orders.clone(), ..self.space.coarse() };
        let axes = coarse.axes(self.default);
        let mut all = coarse.combinations(self.default);
        all.retain(|candidate| candidate.plan != self.plan && candidate.plan != *self.default);
        let time = self.session.left().mul_f64(TOGETHER);
        if axes < 2 || all.len() <= RACERS {
            return Ok(());
        }
        let (affordable, first) = self.session.plans_for(time, GLANCE, self.default)?;
        if affordable <= RACERS {
            return Ok(());
        }
        let there = all.len();
        self.session.random.shuffle(&mut all);
        all.truncate(affordable);
        let (mut best, reached) = self.session.sift(first, all, self.default, GLANCE, RACERS)?;
        self.together = (reached, there);
        best.retain(|one| self.again.as_ref().is_none_or(|again| again.plan != one.plan));
        best.extend(self.again.take());
        self.race(TuningStage::Together, best)
    }

    /// Measures candidates in rounds, after short runs if there are many, and the winner against
    /// the current plan.
    fn stage(&mut self, stage: TuningStage, candidates: Vec<Candidate>) -> Result<(), EarlyEnd> {
        self.session.stage = stage;
        let is_ordered = candidates.iter().all(|candidate| candidate.size_bytes.is_some());
        let candidates = match candidates.len() >= CROWD && !is_ordered {
            true => {
                let time = Duration::MAX;
                self.session.sift(time, candidates, self.default, GLANCE, RACERS)?.0
            }
            false => candidates,
        };
        self.race(stage, candidates)
    }

    /// Measures candidates in rounds, and the winner against the current plan.
    fn race(&mut self, stage: TuningStage, candidates: Vec<Candidate>) -> Result<(), EarlyEnd> {
        if candidates.is_empty() {
            return Ok(());
        }
        let kept = Candidate {
            what: self.in_words(),
            plan: self.plan.clone(),
            size_bytes: size_of_stage(stage, &self.plan),
        };
        let mut field = vec![Runner::new(kept, true, self.default)];
        let others = candidates.into_iter().map(|one| Runner::new(one, false, self.default));
        field.extend(others);
        field.sort_by_key(|runner| runner.candidate.size_bytes);
        let outcome = self.session.race(&mut field, self.default);
        let outcome = outcome.and_then(|()| self.decide(&mut field));
        self.write_down(&field, outcome.is_err());
        outcome
    }

    /// Compares the winner of the rounds with the current plan.
    fn decide(&mut self, field: &mut [Runner]) -> Result<(), EarlyEnd> {
        let kept = field.iter().position(|r| r.candidate.plan == self.plan).expect("it races");
        let best = (0..field.len())
            .filter(|at| *at != kept && field[*at].out.is_none())
            .max_by(|a, b| field[*a].estimate().total_cmp(&field[*b].estimate()));
        let Some(best) = best else { return Ok(()) };
        if field[best].estimate() <= field[kept].estimate() {
            return Ok(());
        }
        let Candidate { what, plan, .. } = field[best].candidate.clone();
        let champion = (self.in_words(), self.plan.clone());
        let duel = match self.session.duel((&what, &plan), (&champion.0, &champion.1))? {
            Ok(duel) => duel,
            Err(error) => {
                field[best].out = Some(AttemptResult::Failed { error: error.to_string() });
                return Ok(());
            }
        };
        if !duel.is_above_one() {
            field[best].out = Some(AttemptResult::NotBeyondNoise { duel });
            return Ok(());
        }
        field[best].out = Some(AttemptResult::Kept { duel });
        let reason = format!("{what} is faster");
        field[kept].out = Some(AttemptResult::Dropped { reason });
        self.session.gain = field[best].estimate().exp();
        // Combinations start from the default, and describe all their changes.
        match self.session.stage {
            TuningStage::Together => self.words = vec![what],
            stage => self.words.push(format!("{stage}: {what}")),
        }
        self.plan = plan;
        self.session.kept = self.in_words();
        Ok(())
    }

    fn write_down(&mut self, field: &[Runner], is_cut_short: bool) {
        let noise = race::noise(field);
        for runner in field {
            let is_kept = runner.candidate.plan == self.plan;
            let verdict = match &runner.out {
                Some(verdict) => verdict.clone(),
                None if is_kept => AttemptResult::Stayed,
                None if is_cut_short => AttemptResult::Unfinished,
                None => AttemptResult::NoFaster,
            };
            // A plan that lost narrowly may have been unlucky, and gets another chance in the next
            // pass.
            if matches!(verdict, AttemptResult::Dropped { .. } | AttemptResult::Failed { .. }) {
                self.tried.push(runner.candidate.plan.clone());
            } else if self.session.stage == TuningStage::Start && !is_kept {
                self.again = Some(runner.candidate.clone()).filter(|one| one.plan != *self.default);
            }
            let attempt = runner.attempt(&self.session, noise, verdict);
            self.session.log.push(attempt);
        }
    }

    fn in_words(&self) -> String {
        if self.words.is_empty() { "the default".to_owned() } else { self.words.join(", ") }
    }

    /// Decides at the end: the plan that was found against the default, by fresh pairs.
    fn finish(mut self, first: f64) -> Result<Tuned, TuneError> {
        if self.plan == *self.default {
            return Ok(self.result(RatioEstimate::SAME, first, false));
        }
        self.session.stage = TuningStage::Final;
        self.session.is_final = true;
        let (what, plan) = (self.in_words(), self.plan.clone());
        let default = ("the default", self.default);
        let duel = match self.session.last_duel((&what, &plan), default) {
            Ok(duel) => duel,
            Err(EarlyEnd::Error(error)) => return Err(error),
            Err(EarlyEnd::Asked | EarlyEnd::Budget) => return Ok(self.interrupted(first)),
        };
        let (duel, gain, error) = match duel {
            Ok((duel, gain)) => (duel, gain, None),
            Err(error) => {
                let duel = PairedTest::default();
                let gain = duel.interval(self.session.settings.confidence);
                (duel, gain, Some(error.to_string()))
            }
        };
        let is_better = gain.is_above_one();
        let verdict = match error {
            Some(error) => AttemptResult::Failed { error },
            None if is_better => AttemptResult::Kept { duel: gain },
            None => AttemptResult::NotBeyondNoise { duel: gain },
        };
        let (stage, to_default) = (TuningStage::Final, gain);
        self.session.log.push(PlanAttempt {
            stage,
            what,
            size_bytes: None,
            plan,
            to_default,
            verdict,
        });
        let figure = median(if is_better { &duel.challenger } else { &duel.champion });
        Ok(self.result(gain, figure, is_better))
    }

    fn interrupted(self, first: f64) -> Tuned {
        Tuned { is_interrupted: true, ..self.result(RatioEstimate::SAME, first, false) }
    }

    fn result(self, gain: RatioEstimate, figure: f64, is_better: bool) -> Tuned {
        let what = if is_better { self.in_words() } else { "the default".to_owned() };
        Tuned {
            plan: if is_better { self.plan } else { self.default.clone() },
            what,
            gain,
            is_better,
            is_interrupted: false,
            figure: figure.exp(),
            attempts: self.session.log,
            together: self.together,
            measured: self.session.measured,
            spent: self.session.spent,
        }
    }
}

fn size_of_stage(stage: TuningStage, plan: &Plan) -> Option<usize> {
    match stage {
        TuningStage::Batch => plan.buffers.batch_bytes,
        TuningStage::Inside => Some(plan.buffers.inside_bytes),
        TuningStage::Between => Some(plan.buffers.between_bytes),
        _ => None,
    }
}
