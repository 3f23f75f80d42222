//! One search: the measurer, its budget, and the log.

use super::log::PlanAttempt;
use super::space::TuningStage;
use millstream_flow::plan::Plan;
use millstream_stats::Random;
use std::time::Duration;

/// The reason why a plan could not be measured.
pub type TrialError = Box<dyn std::error::Error + Send + Sync>;

/// Measures plans.
pub trait PlanMeasurer {
    /// Runs the graph by `plan` once.
    ///
    /// # Errors
    /// The plan cannot be run. The search continues without it, unless it is the default.
    fn measure(&mut self, plan: &Plan) -> Result<PlanMeasurement, TrialError>;

    /// Measures in a `share` of the time, above 0 and up to 1, if a shorter run is representative.
    /// By default it is not, and this is [`Self::measure`].
    ///
    /// # Errors
    /// As [`Self::measure`].
    fn glance(&mut self, plan: &Plan, share: f64) -> Result<PlanMeasurement, TrialError> {
        let _ = share;
        self.measure(plan)
    }
}

/// A measurement.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PlanMeasurement {
    /// The figure of merit, more is better: items per second, say. Above 0.
    pub figure: f64,
    /// The time that the measurement took, with everything around it.
    pub spent: Duration,
}

/// Settings of a search.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// The most time to use, apart from a measurement under way.
    pub budget: Duration,
    /// Pairs in a paired test; from 8, the least for 95 % in several evaluations.
    pub repeats: usize,
    /// Confidence of the verdict: with 0.95, at most one of forty plans that are not better is
    /// accepted.
    pub confidence: f64,
    /// Seed of the order in which plans are measured.
    pub seed: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Self { budget: Duration::from_secs(60), repeats: 10, confidence: 0.95, seed: 1 }
    }
}

/// The state of a search before a measurement.
#[derive(Clone, Copy, Debug)]
pub struct TuningProgress<'a> {
    /// The stage.
    pub stage: TuningStage,
    /// A description of the next measurement.
    pub what: &'a str,
    /// A description of the current plan.
    pub kept: &'a str,
    /// Its figure over the default's.
    pub gain: f64,
    /// Time used.
    pub spent: Duration,
    /// Time budget.
    pub budget: Duration,
    /// Measurements so far.
    pub measured: usize,
}

/// The reason why there is no result.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TuneError {
    /// The default plan does not run, so nothing can be compared.
    #[error("cannot measure the default plan: {0}")]
    Default(TrialError),
    /// An invalid figure.
    #[error(
        "a measurement found {0} items per second, so no items pass through this graph: check its \
         source"
    )]
    Figure(f64),
    /// Too short for a verdict.
    #[error(
        "the search has {:.1} s left, which is too short: one measurement takes {:.2} s and the \
         final comparison needs {}; give a --duration of at least {} s",
        budget.as_secs_f64(), each.as_secs_f64(), needed, least.as_secs() + 1
    )]
    Budget {
        /// The budget.
        budget: Duration,
        /// The time of one measurement.
        each: Duration,
        /// Measurements that the verdict needs.
        needed: usize,
        /// The least budget.
        least: Duration,
    },
}

/// The reason why a stage ends early.
#[derive(Debug)]
pub(super) enum EarlyEnd {
    /// Only the time for the verdict is left.
    Budget,
    /// The user asked for the end.
    Asked,
    /// The search cannot continue.
    Error(TuneError),
}

/// Receives the progress; `false` ends the search.
pub(super) type Watch<'a> = dyn FnMut(&TuningProgress) -> bool + 'a;

pub(super) struct TuningSession<'a> {
    trial: &'a mut dyn PlanMeasurer,
    watch: &'a mut Watch<'a>,
    pub(super) settings: Settings,
    pub(super) random: Random,
    pub(super) log: Vec<PlanAttempt>,
    pub(super) stage: TuningStage,
    pub(super) kept: String,
    pub(super) gain: f64,
    pub(super) spent: Duration,
    pub(super) measured: usize,
    /// Time and number of the full measurements.
    whole: (Duration, u32),
    /// Whether the time that the verdict needs may be used.
    pub(super) is_final: bool,
}

impl<'a> TuningSession<'a> {
    pub(super) fn new(
        trial: &'a mut dyn PlanMeasurer,
        settings: Settings,
        watch: &'a mut Watch<'a>,
    ) -> Self {
        Self {
            trial,
            watch,
            random: Random::new(settings.seed),
            settings,
            log: Vec::new(),
            stage: TuningStage::Start,
            kept: "the default".to_owned(),
            gain: 1.0,
            spent: Duration::ZERO,
            measured: 0,
            whole: (Duration::ZERO, 0),
            is_final: false,
        }
    }

    /// Returns the logarithm of the figure of a plan, measured once: by a short run if a share is
    /// given, otherwise in full. The inner error is the plan's.
    pub(super) fn look(
        &mut self,
        what: &str,
        plan: &Plan,
        share: Option<f64>,
    ) -> Result<Result<f64, TrialError>, EarlyEnd> {
        if !self.is_final && self.spent + self.reserve() > self.settings.budget {
            return Err(EarlyEnd::Budget);
        }
        let progress = TuningProgress {
            stage: self.stage,
            what,
            kept: &self.kept,
            gain: self.gain,
            spent: self.spent,
            budget: self.settings.budget,
            measured: self.measured,
        };
        if !(self.watch)(&progress) {
            return Err(EarlyEnd::Asked);
        }
        let result = match share {
            Some(share) => self.trial.glance(plan, share),
            None => self.trial.measure(plan),
        };
        let result = match result {
            Ok(result) => result,
            // A request to end in the middle of a run makes the run fail.
            Err(_) if !(self.watch)(&progress) => return Err(EarlyEnd::Asked),
            Err(error) => return Ok(Err(error)),
        };
        self.spent += result.spent;
        self.measured += 1;
        if share.is_none() {
            self.whole = (self.whole.0 + result.spent, self.whole.1 + 1);
        }
        if !(result.figure.is_finite() && result.figure > 0.0) {
            return Err(EarlyEnd::Error(TuneError::Figure(result.figure)));
        }
        Ok(Ok(result.figure.ln()))
    }

    /// Measures the plan that others are compared with, by a short run if a share is given,
    /// otherwise in full.
    pub(super) fn look_at_default(
        &mut self,
        plan: &Plan,
        share: Option<f64>,
    ) -> Result<f64, EarlyEnd> {
        match self.look("the default", plan, share)? {
            Ok(logarithm) => Ok(logarithm),
            Err(error) => Err(EarlyEnd::Error(TuneError::Default(error))),
        }
    }

    /// Returns the mean time of a full measurement.
    pub(super) fn each(&self) -> Duration {
        self.whole.0 / self.whole.1.max(1)
    }

    /// Returns the time of the search that is not used yet.
    pub(super) fn left(&self) -> Duration {
        self.settings.budget.saturating_sub(self.spent + self.reserve())
    }

    /// Returns the number of measurements of the verdict.
    pub(super) fn final_measurements(&self) -> usize {
        2 * self.settings.repeats
    }

    /// Returns the time reserved for the verdict: all its evaluations where a third of the budget
    /// suffices for them.
    fn reserve(&self) -> Duration {
        let look = self.each() * u32::try_from(self.final_measurements()).unwrap_or(u32::MAX);
        (4 * look).min(self.settings.budget / 3).max(look)
    }
}
