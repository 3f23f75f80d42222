//! The log of attempts, with figures and results.

use super::space::TuningStage;
use millstream_flow::plan::Plan;
use millstream_stats::RatioEstimate;
use serde::Serialize;
use std::fmt;

/// A plan that was tried in a stage.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PlanAttempt {
    /// The stage.
    pub stage: TuningStage,
    /// A description of the change.
    pub what: String,
    /// The size that was tried, in a stage of sizes.
    pub size_bytes: Option<usize>,
    /// The plan.
    pub plan: Plan,
    /// Its figure over that of the default, from interleaved measurements.
    pub to_default: RatioEstimate,
    /// The result.
    pub verdict: AttemptResult,
}

/// The result of an attempt.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum AttemptResult {
    /// It was the plan at the start of the stage, and was not replaced.
    Stayed,
    /// It beat the current plan.
    Kept {
        /// Ratio to the current plan, from pairs of the paired test alone.
        duel: RatioEstimate,
    },
    /// It was the fastest of its rounds, but not faster than the current plan beyond noise.
    NotBeyondNoise {
        /// Ratio to the current plan, from pairs of the paired test alone.
        duel: RatioEstimate,
    },
    /// It stayed to the last round, and the current plan was as fast.
    NoFaster,
    /// It was dropped from the rounds.
    Dropped {
        /// The reason, as text.
        reason: String,
    },
    /// It could not be measured.
    Failed {
        /// The error.
        error: String,
    },
    /// The time was over before there was a result.
    Unfinished,
}

impl fmt::Display for AttemptResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stayed => f.write_str("stays"),
            Self::Kept { duel } => write!(f, "kept: {} of what was kept before", Percent(*duel)),
            Self::NotBeyondNoise { duel } => {
                write!(f, "fastest, but not beyond noise: {}", Percent(*duel))
            }
            Self::NoFaster => f.write_str("no faster than what is kept"),
            Self::Dropped { reason } => write!(f, "dropped: {reason}"),
            Self::Failed { error } => write!(f, "failed: {error}"),
            Self::Unfinished => f.write_str("unfinished: the time was over"),
        }
    }
}

/// An interval of a ratio as text: `+3.8 % (+2.9 to +4.6)`.
pub struct Percent(pub RatioEstimate);

impl fmt::Display for Percent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let RatioEstimate { estimate, low, high, .. } = self.0;
        let percent = |ratio: f64| (ratio - 1.0) * 100.0;
        write!(f, "{:+.1} %", percent(estimate))?;
        if high.is_finite() && high > low {
            write!(f, " ({:+.1} to {:+.1})", percent(low), percent(high))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_read_as_gains() {
        let of = |estimate, low, high| {
            Percent(RatioEstimate { estimate, low, high, pairs: 6 }).to_string()
        };
        assert_eq!(of(1.038, 1.029, 1.046), "+3.8 % (+2.9 to +4.6)");
        assert_eq!(of(0.889, 0.0, f64::INFINITY), "-11.1 %");
        assert_eq!(Percent(RatioEstimate::SAME).to_string(), "+0.0 %");
        let verdict =
            AttemptResult::Kept { duel: RatioEstimate { pairs: 8, ..RatioEstimate::SAME } };
        assert_eq!(verdict.to_string(), "kept: +0.0 % of what was kept before");
    }
}
