//! Selection from very many plans: all are measured shortly, and the better part again and longer.
//!
//! This is successive halving (Karnin, Koren and Somekh 2013; Jamieson and Talwalkar 2016). Every
//! plan is measured, and most of the time goes to those that are hard to tell apart. Two rounds of
//! short runs choose the plans that are measured in full length; from then on only full
//! measurements count. The figures that a plan was chosen by are biased by luck, so they decide
//! nothing else: the selected plans are measured again in rounds or a paired test.

use super::session::{EarlyEnd, TuningSession};
use super::space::Candidate;
use millstream_flow::plan::Plan;
use millstream_stats::paired::hodges_lehmann;
use std::time::Duration;

/// The plans per remaining plan in each round of short runs.
const ONE_OF: [usize; 2] = [4, 3];
/// The plans per remaining plan in each round of full measurements.
const ONE_OF_MEASURED: usize = 2;
/// The number of plans between two measurements of the default: a machine's speed drifts.
const PLANS_PER_BASE: usize = 4;
/// The number of measurements of the default around a plan, with whose median it is compared.
const BASES: usize = 4;
/// The smallest and largest share of a measurement for a short run.
const SHARES: [f64; 2] = [0.1, 0.5];
/// Short runs of the default before anything else, to measure their duration.
const FIRST_GLANCES: u32 = 3;

/// The factor for measuring the default.
const WITH_BASES: f64 = 1.0 + 1.0 / PLANS_PER_BASE as f64;
/// The short runs for each plan.
const GLANCED_SHARE: f64 = 1.0 + 1.0 / ONE_OF[0] as f64;
/// The full measurements for each plan: a geometric series.
const MEASURED_SHARE: f64 =
    1.0 / (ONE_OF[0] * ONE_OF[1]) as f64 * ONE_OF_MEASURED as f64 / (ONE_OF_MEASURED - 1) as f64;

/// A plan and its measurements.
struct CandidatePlan {
    candidate: Candidate,
    /// Logarithms of figure over default.
    ratios: Vec<f64>,
    failed: bool,
}

impl TuningSession<'_> {
    /// Returns the share of a measurement at which short runs of so many plans end in time, as far
    /// as possible.
    pub(super) fn share_for(&self, plans: usize, time: Duration) -> f64 {
        let [least, most] = SHARES;
        let whole = self.each().as_secs_f64();
        let looks = time.as_secs_f64() / (whole * plans as f64 * WITH_BASES).max(1e-9);
        ((looks - MEASURED_SHARE) / GLANCED_SHARE).clamp(least, most)
    }

    /// Returns how many plans can be sifted in `time` at this share, and the time of the first
    /// short runs of all of them.
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
        let each = GLANCED_SHARE * glance + MEASURED_SHARE * whole;
        let plans = time.as_secs_f64() / (WITH_BASES * each).max(1e-9);
        Ok((plans as usize, time.mul_f64(glance / each.max(1e-9))))
    }

    /// Measures the `candidates` that are reached in so much time (a machine may become slower than
    /// it was when they were counted), and continues until no more than `leave` are left, best
    /// first. Also returns the number that was reached.
    pub(super) fn sift(
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

    /// Measures every plan once, in random order, with the default in between. When `time` is over,
    /// plans without a measurement are dropped.
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
                // A plan that fails is dropped, as in the rounds.
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
