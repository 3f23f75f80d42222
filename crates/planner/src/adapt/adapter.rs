//! Adaptation of one running graph.

use super::{AdaptPolicy, Adaptation, CostModel};
use millstream_flow::observe::Profile;
use millstream_flow::runtime::{MoveError, Moved, RunningGraph};
use std::time::Instant;

/// Watches a running graph and moves it, in the thread that calls [`step`](Self::step).
pub struct Adapter {
    adaptation: Adaptation,
    advisor: Box<dyn CostModel>,
    /// The beginning of the present window, and the profile at that time.
    window: Option<(Instant, Profile)>,
}

/// The result of a step.
#[derive(Debug)]
pub enum AdaptEvent {
    /// The graph runs with another plan.
    Moved {
        /// The result of the move.
        moved: Moved,
        /// Share of the time that it saves by prediction.
        gain: f64,
    },
    /// The graph could not be moved; it runs with the plan before.
    Refused(MoveError),
}

impl Adapter {
    /// Starts with this policy and cost model.
    #[must_use]
    pub fn new(policy: AdaptPolicy, advisor: impl CostModel + 'static) -> Self {
        let adaptation = Adaptation::new(policy);
        Self { adaptation, advisor: Box::new(advisor), window: None }
    }

    /// Evaluates the graph when a window is over, and moves it when the policy says so. Call it
    /// several times in a window; within a window it costs one clock comparison.
    pub fn step(&mut self, running: &mut RunningGraph, now: Instant) -> Option<AdaptEvent> {
        let window = self.adaptation.policy.window;
        if self.window.as_ref().is_some_and(|(since, _)| now.duration_since(*since) < window) {
            return None;
        }
        let profile = running.profile();
        let (_, before) = self.window.replace((now, profile.clone()))?;
        let load = profile.since(&before);
        let current = running.plan().clone();
        let proposal = self.adaptation.observe(now, &load, &current, &mut *self.advisor)?;
        let limit = self.adaptation.policy.limit;
        match running.repartition(&proposal.plan, limit) {
            Ok(moved) => {
                self.adaptation.moved(now, &current, running.plan());
                // The cost of the move itself is not load.
                self.window = None;
                Some(AdaptEvent::Moved { moved, gain: proposal.gain })
            }
            Err(MoveError::Ended) => None,
            Err(error) => {
                self.adaptation.refused(now);
                Some(AdaptEvent::Refused(error))
            }
        }
    }
}
