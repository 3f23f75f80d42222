//! Interleaved rounds of many plans; the hopeless ones leave early.

use super::log::{AttemptResult, PlanAttempt};
use super::session::{EarlyEnd, TuningSession};
use super::space::Candidate;
use millstream_flow::plan::Plan;
use millstream_stats::RatioEstimate;
use millstream_stats::paired::{hodges_lehmann, pooled_noise, with_noise};

/// Rounds before a plan may be dropped, and again for a plan whose ratios were doubted.
const ROUNDS_MIN: usize = 2;
/// Rounds at most.
const ROUNDS_MAX: usize = 6;
/// The least noise of a measurement, as a logarithm: no real machine is steadier.
const NOISE_FLOOR: f64 = 0.002;

/// A plan in the rounds.
#[derive(Clone, Debug)]
pub(super) struct Runner {
    pub(super) candidate: Candidate,
    /// It is the current plan: measured to the end, and never dropped.
    is_kept: bool,
    /// It is the default itself, so its ratio is known.
    is_default: bool,
    /// Logarithms of figure over default.
    ratios: Vec<f64>,
    /// Ratios that were doubted.
    doubted: Vec<f64>,
    /// The result, once it has left.
    pub(super) out: Option<AttemptResult>,
}

impl Runner {
    pub(super) fn new(candidate: Candidate, is_kept: bool, default: &Plan) -> Self {
        let is_default = candidate.plan == *default;
        let ratios = if is_default { vec![0.0] } else { Vec::new() };
        Self { candidate, is_kept, is_default, ratios, doubted: Vec::new(), out: None }
    }

    pub(super) fn estimate(&self) -> f64 {
        hodges_lehmann(&self.ratios)
    }

    fn is_measured(&self) -> bool {
        self.out.is_none() && !self.is_default
    }

    fn is_challenger(&self) -> bool {
        self.out.is_none() && !self.is_kept
    }

    /// Returns half of the interval that holds the true ratio, given the noise of one ratio.
    fn reach(&self, noise: f64) -> f64 {
        if self.is_default { 0.0 } else { 2.0 * noise / (self.ratios.len().max(1) as f64).sqrt() }
    }

    fn interval(&self, noise: f64) -> RatioEstimate {
        match (self.is_default, self.ratios.is_empty()) {
            (true, _) => RatioEstimate::SAME,
            (_, true) => RatioEstimate { estimate: 1.0, low: 0.0, high: f64::INFINITY, pairs: 0 },
            _ => with_noise(&self.ratios, noise),
        }
    }

    pub(super) fn attempt(
        &self,
        session: &TuningSession,
        noise: f64,
        verdict: AttemptResult,
    ) -> PlanAttempt {
        PlanAttempt {
            stage: session.stage,
            what: self.candidate.what.clone(),
            size_bytes: self.candidate.size_bytes,
            plan: self.candidate.plan.clone(),
            to_default: self.interval(noise),
            verdict,
        }
    }
}

/// Returns the noise of one ratio, from all measurements of the rounds.
pub(super) fn noise(field: &[Runner]) -> f64 {
    let measured = field.iter().filter(|runner| !runner.is_default);
    pooled_noise(measured.map(|runner| runner.ratios.as_slice()), NOISE_FLOOR)
}

impl TuningSession<'_> {
    /// Measures `field` in rounds, the default in each. Sizes are in ascending order. A plan
    /// without a result after it has not been dropped.
    pub(super) fn race(&mut self, field: &mut [Runner], default: &Plan) -> Result<(), EarlyEnd> {
        let entered = field.iter().filter(|runner| runner.is_challenger()).count();
        for round in 1..=ROUNDS_MAX {
            self.round(field, default)?;
            if round >= ROUNDS_MIN {
                drop_hopeless(field);
                drop_rearmost(field, entered.div_ceil(1 << (round - 1)).max(2));
            }
            let left = field.iter().filter(|runner| runner.is_challenger());
            if left.count() <= 1 && round >= ROUNDS_MIN {
                break;
            }
        }
        Ok(())
    }

    /// Measures every plan once, in random order.
    fn round(&mut self, field: &mut [Runner], default: &Plan) -> Result<(), EarlyEnd> {
        let mut order: Vec<Option<usize>> =
            (0..field.len()).filter(|at| field[*at].is_measured()).map(Some).collect();
        order.push(None);
        self.random.shuffle(&mut order);
        let (mut base, mut figures) = (0.0, Vec::new());
        for at in order {
            let Some(at) = at else {
                base = self.look_at_default(default, None)?;
                continue;
            };
            let Candidate { what, plan, .. } = field[at].candidate.clone();
            match self.look(&what, &plan, None)? {
                Ok(figure) => figures.push((at, figure)),
                Err(error) => {
                    field[at].out = Some(AttemptResult::Failed { error: error.to_string() });
                }
            }
        }
        figures.into_iter().for_each(|(at, figure)| field[at].ratios.push(figure - base));
        Ok(())
    }
}

/// Drops plans that are behind the leader beyond noise. A single dip between better neighbours is
/// measured again instead: in a curve of sizes it is more likely a disturbance of the machine.
fn drop_hopeless(field: &mut [Runner]) {
    let noise = noise(field);
    let Some(leader) = leader(field) else { return };
    let (best, best_reach) = (field[leader].estimate(), field[leader].reach(noise));
    for at in 0..field.len() {
        let runner = &field[at];
        let is_judged = runner.is_challenger() && runner.ratios.len() >= ROUNDS_MIN;
        let behind = best - runner.estimate();
        if !is_judged || at == leader || behind <= runner.reach(noise).hypot(best_reach) {
            continue;
        }
        if runner.doubted.is_empty() && is_lone_dip(field, at, noise) {
            field[at].doubted = std::mem::take(&mut field[at].ratios);
            continue;
        }
        let again = if runner.doubted.is_empty() {
            String::new()
        } else {
            let before = (hodges_lehmann(&runner.doubted).exp() - 1.0) * 100.0;
            format!(", measured again as a lone dip (at first {before:+.1} %)")
        };
        let percent = (1.0 - (-behind).exp()) * 100.0;
        let reason = format!(
            "{percent:.1} % behind {} after {} rounds{again}",
            field[leader].candidate.what,
            runner.ratios.len() + runner.doubted.len(),
        );
        field[at].out = Some(AttemptResult::Dropped { reason });
    }
}

/// Keeps the best `places` plans, and those that are still to be measured again.
fn drop_rearmost(field: &mut [Runner], places: usize) {
    let mut ranks: Vec<usize> = (0..field.len())
        .filter(|at| field[*at].is_challenger() && field[*at].ratios.len() >= ROUNDS_MIN)
        .collect();
    ranks.sort_by(|a, b| field[*b].estimate().total_cmp(&field[*a].estimate()));
    for at in ranks.into_iter().skip(places) {
        let reason = format!("not among the best {places} after {} rounds", field[at].ratios.len());
        field[at].out = Some(AttemptResult::Dropped { reason });
    }
}

/// Returns the fastest plan that is not dropped, including the current one.
fn leader(field: &[Runner]) -> Option<usize> {
    let there = |at: &usize| field[*at].out.is_none() && !field[*at].ratios.is_empty();
    (0..field.len())
        .filter(there)
        .max_by(|a, b| field[*a].estimate().total_cmp(&field[*b].estimate()))
}

/// Whether both neighbours in size are better by more than noise.
fn is_lone_dip(field: &[Runner], at: usize, noise: f64) -> bool {
    let Some(size) = field[at].candidate.size_bytes else { return false };
    let known = || {
        let others = field.iter().filter(|runner| !runner.ratios.is_empty());
        others.filter_map(|runner| Some((runner.candidate.size_bytes?, runner)))
    };
    let below = known().filter(|(other, _)| *other < size).max_by_key(|(other, _)| *other);
    let above = known().filter(|(other, _)| *other > size).min_by_key(|(other, _)| *other);
    let is_better = |other: Option<(usize, &Runner)>| {
        other.is_some_and(|(_, other)| {
            let reach = field[at].reach(noise).hypot(other.reach(noise));
            other.estimate() - field[at].estimate() > reach
        })
    };
    is_better(below) && is_better(above)
}
