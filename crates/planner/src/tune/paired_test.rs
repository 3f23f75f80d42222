//! Two plans, measured in pairs that had no part in choosing them.

use super::session::{EarlyEnd, TrialError, TuningSession};
use super::statistics::{RatioEstimate, hodges_lehmann, paired};
use millstream_flow::plan::Plan;
use std::time::Duration;

/// A duel that the challenger is losing after so many pairs is not fought to its end. Giving up
/// never keeps a plan, so it needs no correction.
const GIVE_UP_PAIRS: usize = 5;
/// Times that the last duel may be looked at; each has its share of the chance to be wrong.
const LOOKS: u32 = 3;
/// What a stage needs to go on with another plan. The verdict comes later, by fresh pairs; until
/// then two plans that are as good as equal may change places.
const CONFIDENCE_OF_STAGES: f64 = 0.8;

/// Figures of a duel.
#[derive(Clone, Debug, Default)]
pub(super) struct PairedTest {
    /// Logarithms of the challenger's figures.
    pub(super) challenger: Vec<f64>,
    /// Of the champion's.
    pub(super) champion: Vec<f64>,
}

impl PairedTest {
    /// Challenger over champion.
    pub(super) fn interval(&self, confidence: f64) -> RatioEstimate {
        paired(&self.ratios(), confidence)
    }

    fn ratios(&self) -> Vec<f64> {
        self.challenger.iter().zip(&self.champion).map(|(one, other)| one - other).collect()
    }
}

impl TuningSession<'_> {
    /// The duel of a stage: whether the challenger seems to be better.
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

    /// The last duel: fought to its end, and on while the challenger leads without being sure of it
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
            // As many pairs again, or as many as there is time for; not by what they show.
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

    /// Both plans once, in random order.
    pub(super) fn pair(
        &mut self,
        challenger: (&str, &Plan),
        champion: (&str, &Plan),
        duel: &mut PairedTest,
    ) -> Result<Result<(), TrialError>, EarlyEnd> {
        let mut sides = [(challenger, true), (champion, false)];
        if self.random.next().is_multiple_of(2) {
            sides.swap(0, 1);
        }
        for ((what, plan), is_challenger) in sides {
            let figure = match self.measure(what, plan)? {
                Ok(figure) => figure,
                Err(error) => return Ok(Err(error)),
            };
            let figures = if is_challenger { &mut duel.challenger } else { &mut duel.champion };
            figures.push(figure);
        }
        Ok(Ok(()))
    }
}
