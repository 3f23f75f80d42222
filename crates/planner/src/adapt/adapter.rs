//! Adaptation of one running graph.

use super::{AdaptPolicy, Adaptation, CostModel};
use millstream_flow::profile::Profile;
use millstream_flow::runtime::{MoveError, Moved, RunningGraph};
use std::time::Instant;

/// Watches a running graph and moves it, in the thread that calls [`step`](Self::step).
pub struct Adapter {
    adaptation: Adaptation,
    advisor: Box<dyn CostModel>,
    /// When the present window began, and the profile by then.
    window: Option<(Instant, Profile)>,
}

/// What a step has done.
#[derive(Debug)]
pub enum AdaptEvent {
    /// The graph runs by another plan.
    Moved {
        /// What the move did.
        moved: Moved,
        /// Share of the time that it saves by prediction.
        gain: f64,
    },
    /// It should, but could not be moved; it runs by the plan before.
    Refused(MoveError),
}

impl Adapter {
    /// By this policy, with this advice.
    #[must_use]
    pub fn new(policy: AdaptPolicy, advisor: impl CostModel + 'static) -> Self {
        let adaptation = Adaptation::new(policy);
        Self { adaptation, advisor: Box::new(advisor), window: None }
    }

    /// Looks at the graph when a window is over, and moves it when it is time. To be called
    /// several times in a window; costs a clock comparison otherwise.
    pub fn step(&mut self, running: &mut RunningGraph, now: Instant) -> Option<AdaptEvent> {
        let window = self.adaptation.policy().window;
        if self.window.as_ref().is_some_and(|(since, _)| now.duration_since(*since) < window) {
            return None;
        }
        let profile = running.profile();
        let (_, before) = self.window.replace((now, profile.clone()))?;
        let load = profile.since(&before);
        let current = running.plan().clone();
        let proposal = self.adaptation.observe(now, &load, &current, &mut *self.advisor)?;
        let limit = self.adaptation.policy().limit;
        match running.repartition_within(&proposal.plan, limit) {
            Ok(moved) => {
                self.adaptation.moved(now, &current, running.plan());
                // What the move itself cost is no load.
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
