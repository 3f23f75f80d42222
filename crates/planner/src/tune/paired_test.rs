//! Paired tests of two plans, with pairs that had no part in choosing them.

use super::session::{EarlyEnd, TrialError, TuningSession};
use millstream_flow::plan::Plan;
use millstream_stats::RatioEstimate;
use millstream_stats::paired::{hodges_lehmann, paired};
use std::time::Duration;

/// A paired test that the challenger is losing after so many pairs ends early. Ending early never
/// changes the plan, so it needs no correction.
const GIVE_UP_PAIRS: usize = 5;
/// The number of times that the last test may be evaluated; each has its share of the error
/// probability.
const LOOKS: u32 = 3;
/// The confidence at which a stage changes to another plan. The verdict comes later, by fresh
/// pairs; until then two plans that are about equal may replace each other.
const CONFIDENCE_OF_STAGES: f64 = 0.8;

/// Figures of a paired test.
#[derive(Clone, Debug, Default)]
pub(super) struct PairedTest {
    /// Logarithms of the challenger's figures.
    pub(super) challenger: Vec<f64>,
    /// Logarithms of the current plan's figures.
    pub(super) champion: Vec<f64>,
}

impl PairedTest {
    /// Returns the ratio of challenger to current plan.
    pub(super) fn interval(&self, confidence: f64) -> RatioEstimate {
        paired(&self.ratios(), confidence)
    }

    fn ratios(&self) -> Vec<f64> {
        self.challenger.iter().zip(&self.champion).map(|(one, other)| one - other).collect()
    }
}

impl TuningSession<'_> {
    /// Runs the paired test of a stage; returns whether the challenger seems to be better.
    pub(super) fn duel(
        &mut self,
        challenger: (&str, &Plan),
        champion: (&str, &Plan),
    ) -> Result<Result<RatioEstimate, TrialError>, EarlyEnd> {
        let mut duel = PairedTest::default();
        for pair in 1..=self.settings.repeats {
            if let Err(error) = self.pair(challenger, champion, &mut duel)? {
                return Ok(Err(error));
            }
            if pair >= GIVE_UP_PAIRS && hodges_lehmann(&duel.ratios()) <= 0.0 {
                break;
            }
        }
        Ok(Ok(duel.interval(CONFIDENCE_OF_STAGES)))
    }

    /// Runs the last paired test to its end, and on while the challenger leads without significance
    /// and there is time.
    pub(super) fn last_duel(
        &mut self,
        challenger: (&str, &Plan),
        champion: (&str, &Plan),
    ) -> Result<Result<(PairedTest, RatioEstimate), TrialError>, EarlyEnd> {
        let mut duel = PairedTest::default();
        let confidence = 1.0 - (1.0 - self.settings.confidence) / f64::from(LOOKS);
        let mut pairs = self.settings.repeats;
        let mut look = 0;
        loop {
            look += 1;
            for _ in 0..pairs {
                if let Err(error) = self.pair(challenger, champion, &mut duel)? {
                    return Ok(Err(error));
                }
            }
            let interval = duel.interval(confidence);
            // As many pairs again, or as many as there is time for; independent of their results.
            let left = self.settings.budget.saturating_sub(self.spent);
            let affordable = left.div_duration_f64(2 * self.each().max(Duration::from_nanos(1)));
            pairs = duel.challenger.len().min(affordable as usize);
            let has_time = 2 * pairs >= self.settings.repeats;
            let is_open = interval.estimate > 1.0 && !interval.is_above_one();
            if look == LOOKS || !is_open || !has_time {
                return Ok(Ok((duel, interval)));
            }
        }
    }

    /// Measures both plans once, in random order.
    pub(super) fn pair(
        &mut self,
        challenger: (&str, &Plan),
        champion: (&str, &Plan),
        duel: &mut PairedTest,
    ) -> Result<Result<(), TrialError>, EarlyEnd> {
        let mut sides = [(challenger, true), (champion, false)];
        if self.random.bits() % 2 == 0 {
            sides.swap(0, 1);
        }
        for ((what, plan), is_challenger) in sides {
            let figure = match self.look(what, plan, None)? {
                Ok(figure) => figure,
                Err(error) => return Ok(Err(error)),
            };
            let figures = if is_challenger { &mut duel.challenger } else { &mut duel.champion };
            figures.push(figure);
        }
        Ok(Ok(()))
    }
}
