//! Very many plans: all are looked at, and the better part again and longer.
//!
//! This is successive halving (Karnin, Koren and Somekh 2013; Jamieson and Talwalkar 2016). Nobody
//! is left out, and most of the time goes to those who are hard to tell apart. Two rounds of
//! glances choose who is measured in full length; from then on only full measurements count. The
//! figures that somebody was chosen by are too good by some luck, so they decide nothing else: who
//! comes out meets the others again in a race or a duel.

use super::session::{EarlyEnd, TuningSession};
use super::space::Candidate;
use super::statistics::hodges_lehmann;
use millstream_flow::plan::Plan;
use std::time::Duration;

/// After each round of glances, one of so many goes on.
const ONE_OF: [usize; 2] = [4, 3];
/// After each round of measurements.
const ONE_OF_MEASURED: usize = 2;
/// The default is measured again after so many plans: a machine's speed wanders.
const PLANS_PER_BASE: usize = 4;
/// A plan is compared with the middle of so many measurements of the default around it.
const BASES: usize = 4;
/// A glance takes no smaller share of a measurement, and no larger.
const SHARES: [f64; 2] = [0.1, 0.5];
/// Glances at the default before anything else, to know how long one takes.
const FIRST_GLANCES: u32 = 3;

/// A plan and what is known of it.
struct CandidatePlan {
    candidate: Candidate,
    /// Logarithms of figure over default.
    ratios: Vec<f64>,
    failed: bool,
}

impl TuningSession<'_> {
    /// The share of a measurement at which glances at so many plans end in time, as far as that
    /// can be.
    pub(super) fn share_for(&self, plans: usize, time: Duration) -> f64 {
        let [least, most] = SHARES;
        let whole = self.each().as_secs_f64();
        let looks = time.as_secs_f64() / (whole * plans as f64 * with_bases()).max(1e-9);
        ((looks - measured_share()) / glanced_share()).clamp(least, most)
    }

    /// How many plans can be sifted in `time` at this share, and how much of it the first glances
    /// at all of them take.
    pub(super) fn plans_for(
        &mut self,
        time: Duration,
        share: f64,
        default: &Plan,
    ) -> Result<(usize, Duration), EarlyEnd> {
        let before = self.spent;
        for _ in 0..FIRST_GLANCES {
            self.look_at_default(default, Some(share))?;
        }
        let glance = (self.spent - before).as_secs_f64() / f64::from(FIRST_GLANCES);
        let whole = self.each().as_secs_f64();
        let each = glanced_share() * glance + measured_share() * whole;
        let plans = time.as_secs_f64() / (with_bases() * each).max(1e-9);
        Ok((plans as usize, time.mul_f64(glance / each.max(1e-9))))
    }

    /// Looks at all `candidates` and goes on until no more than `leave` are left, best first.
    pub(super) fn sift(
        &mut self,
        candidates: Vec<Candidate>,
        default: &Plan,
        share: f64,
        leave: usize,
    ) -> Result<Vec<Candidate>, EarlyEnd> {
        let (best, _) = self.sift_within(Duration::MAX, candidates, default, share, leave)?;
        Ok(best)
    }

    /// The same, but only candidates that are reached in so much time take part: a machine may
    /// become slower than it was when they were counted. And how many those are.
    pub(super) fn sift_within(
        &mut self,
        time: Duration,
        candidates: Vec<Candidate>,
        default: &Plan,
        share: f64,
        leave: usize,
    ) -> Result<(Vec<Candidate>, usize), EarlyEnd> {
        let entry = |candidate| CandidatePlan { candidate, ratios: Vec::new(), failed: false };
        let mut field: Vec<CandidatePlan> = candidates.into_iter().map(entry).collect();
        let mut reached = None;
        for (one_of, time) in ONE_OF.into_iter().zip([time, Duration::MAX]) {
            if field.len() > leave {
                self.look_at_all(&mut field, default, Some(share), time)?;
                reached.get_or_insert(field.len());
                keep(&mut field, one_of, leave);
            }
        }
        let reached = reached.unwrap_or(field.len());
        field.iter_mut().for_each(|entry| entry.ratios.clear());
        while field.len() > leave {
            self.look_at_all(&mut field, default, None, Duration::MAX)?;
            keep(&mut field, ONE_OF_MEASURED, leave);
        }
        Ok((field.into_iter().map(|entry| entry.candidate).collect(), reached))
    }

    /// Everybody once, in random order, with the default in between. When `time` is over, those
    /// who were not looked at yet are out.
    fn look_at_all(
        &mut self,
        field: &mut Vec<CandidatePlan>,
        default: &Plan,
        share: Option<f64>,
        time: Duration,
    ) -> Result<(), EarlyEnd> {
        let before = self.spent;
        let mut order: Vec<usize> = (0..field.len()).collect();
        self.random.shuffle(&mut order);
        let mut bases = vec![self.look_at_default(default, share)?];
        let mut figures = Vec::with_capacity(order.len());
        for group in order.chunks(PLANS_PER_BASE) {
            if self.spent - before > time {
                break;
            }
            for &at in group {
                let Candidate { what, plan, .. } = field[at].candidate.clone();
                // A plan that fails is out, as it would be of a race.
                match self.look(&what, &plan, share)? {
                    Ok(figure) => figures.push((at, bases.len(), figure)),
                    Err(_) => field[at].failed = true,
                }
            }
            bases.push(self.look_at_default(default, share)?);
        }
        for (at, next, figure) in figures {
            let around = next.saturating_sub(BASES / 2)..(next + BASES / 2).min(bases.len());
            field[at].ratios.push(figure - hodges_lehmann(&bases[around]));
        }
        field.retain(|entry| entry.failed || !entry.ratios.is_empty());
        Ok(())
    }
}

/// Keeps one of so many, but not fewer than `leave`, best first.
fn keep(field: &mut Vec<CandidatePlan>, one_of: usize, leave: usize) {
    let places = field.len().div_ceil(one_of).max(leave);
    field.retain(|entry| !entry.failed);
    let estimate = |entry: &CandidatePlan| hodges_lehmann(&entry.ratios);
    field.sort_by(|a, b| estimate(b).total_cmp(&estimate(a)));
    field.truncate(places);
}

/// What measuring the default adds, as a factor.
fn with_bases() -> f64 {
    1.0 + 1.0 / PLANS_PER_BASE as f64
}

/// Glances for each plan.
fn glanced_share() -> f64 {
    1.0 + 1.0 / ONE_OF[0] as f64
}

/// Measurements for each plan: a geometric series.
fn measured_share() -> f64 {
    let first = 1.0 / (ONE_OF[0] * ONE_OF[1]) as f64;
    first * ONE_OF_MEASURED as f64 / (ONE_OF_MEASURED - 1) as f64
}
