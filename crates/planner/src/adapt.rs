//! Moving a running graph when its load has shifted, and not otherwise.
//!
//! Time is cut into windows, each with the graph's [`Profile`] in it. A [`CostModel`] (usually the
//! partitioner) gives the best plan for a window and the cost of any plan in it. [`Adaptation`]
//! decides with these:
//!
//! - A plan becomes a candidate when it beats the present one by [`AdaptPolicy::gain_min`]; it must
//!   do so in [`AdaptPolicy::windows`] windows in a row, each by its own measurements.
//! - Between two moves lies at least [`AdaptPolicy::interval`]. A move back to a plan that was left
//!   not long ago doubles that, up to [`AdaptPolicy::interval_max`], so a load that alternates
//!   causes fewer and fewer moves; any other move halves it again.
//! - A refused move doubles it too, and counts as a move: a block that never returns in time must
//!   not stop the graph again and again.
//!
//! Nothing here reads a clock. [`Adapter`] does the work for a
//! [running](millstream_flow::RunningGraph) graph, in the thread that waits for it.

mod adapter;
mod advisor;

pub use adapter::{AdaptEvent, Adapter};
pub use advisor::{CostModel, Partitioner};

use millstream_flow::observe::Profile;
use millstream_flow::plan::{Partition, Plan};
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Number of earlier plans that are remembered.
const REMEMBERED: usize = 4;

/// The policy of moves.
#[derive(Clone, Debug, PartialEq)]
pub struct AdaptPolicy {
    /// Length of a window.
    pub window: Duration,
    /// Windows in a row that must favour a plan; at least 1.
    pub windows: u32,
    /// Share of the time that a plan must save, 0 to 1.
    pub gain_min: f64,
    /// Least time between two moves.
    pub interval: Duration,
    /// The largest interval, reached while moves undo each other or are refused.
    pub interval_max: Duration,
    /// The longest wait of a move for a block in a call; the others stand still meanwhile.
    pub limit: Duration,
}

impl Default for AdaptPolicy {
    fn default() -> Self {
        Self {
            window: Duration::from_millis(500),
            windows: 4,
            gain_min: 0.1,
            interval: Duration::from_secs(5),
            interval_max: Duration::from_secs(320),
            limit: Duration::from_millis(100),
        }
    }
}

/// A plan that has been better for long enough.
#[derive(Clone, Debug, PartialEq)]
pub struct Proposal {
    /// The plan to move to.
    pub plan: Plan,
    /// Share of the time that it saves by prediction, in the worst of the windows.
    pub gain: f64,
}

/// Decides window by window.
#[derive(Clone, Debug)]
pub struct Adaptation {
    /// The policy.
    pub policy: AdaptPolicy,
    candidate: Option<Candidate>,
    /// The time of the last move or attempt.
    last: Option<Instant>,
    /// Earlier plans, the last at the end.
    left: VecDeque<Plan>,
    interval: Duration,
}

#[derive(Clone, Debug)]
struct Candidate {
    plan: Plan,
    windows: u32,
    gain: f64,
}

impl Adaptation {
    /// Starts with this policy and no history.
    #[must_use]
    pub fn new(policy: AdaptPolicy) -> Self {
        let interval = policy.interval;
        Self { policy, candidate: None, last: None, left: VecDeque::new(), interval }
    }

    /// Evaluates a window that ended `now`, during which the graph ran with `current`. A window
    /// without items changes nothing.
    pub fn observe(
        &mut self,
        now: Instant,
        load: &Profile,
        current: &Plan,
        advisor: &mut dyn CostModel,
    ) -> Option<Proposal> {
        if load.blocks.iter().all(|block| block.busy_ns == 0) {
            return None;
        }
        let gain_min = self.policy.gain_min;
        let present = advisor.cost(load, current)?;
        let mut gain = |plan: &Plan| {
            let gain = 1.0 - advisor.cost(load, plan)? / present;
            (gain >= gain_min && !is_same(plan, current)).then_some(gain)
        };
        self.candidate = self.candidate.take().and_then(|mut candidate| {
            candidate.gain = candidate.gain.min(gain(&candidate.plan)?);
            candidate.windows += 1;
            Some(candidate)
        });
        if self.candidate.is_none() {
            let plan = advisor.propose(load)?;
            let gain = 1.0 - advisor.cost(load, &plan)? / present;
            let worth = gain >= gain_min && !is_same(&plan, current);
            self.candidate = worth.then_some(Candidate { plan, windows: 1, gain });
        }
        let candidate = self.candidate.as_ref()?;
        let due = self.last.is_none_or(|at| now.saturating_duration_since(at) >= self.interval);
        (due && candidate.windows >= self.policy.windows.max(1))
            .then(|| Proposal { plan: candidate.plan.clone(), gain: candidate.gain })
    }

    /// Records that the graph was moved `from` one plan `to` another.
    pub fn moved(&mut self, now: Instant, from: &Plan, to: &Plan) {
        let returns = self.left.iter().any(|left| is_same(left, to));
        self.wait_from(now, if returns { self.interval * 2 } else { self.interval / 2 });
        if self.left.len() == REMEMBERED {
            self.left.pop_front();
        }
        self.left.push_back(from.clone());
    }

    /// Records that a move was refused: the evidence has to be gathered again, for longer.
    pub fn refused(&mut self, now: Instant) {
        self.wait_from(now, self.interval * 2);
    }

    fn wait_from(&mut self, now: Instant, interval: Duration) {
        self.interval = interval.min(self.policy.interval_max).max(self.policy.interval);
        self.last = Some(now);
        self.candidate = None;
    }
}

/// Whether two plans put the same blocks together on the same CPUs, whatever the names.
fn is_same(one: &Plan, other: &Plan) -> bool {
    let sorted = |plan: &Plan| {
        let place = |partition: &Partition| {
            let mut blocks = partition.blocks.clone();
            blocks.sort_unstable();
            (blocks, partition.cpu)
        };
        let mut places: Vec<_> = plan.partitions.iter().map(place).collect();
        places.sort_unstable();
        places
    };
    sorted(one) == sorted(other)
}

#[cfg(test)]
mod tests;
