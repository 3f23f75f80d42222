//! How a port's user gets its link driven: by a thread that it wakes, or by itself.

use std::time::Duration;

use millstream_ring::Waiter;

/// Whether a sender has time for what its datagrams need: free frames, or a neighbour's answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Patience {
    None,
    Full,
}

/// Whoever drives the link, as a port's user sees it.
pub(crate) trait Poller: Send + Sync {
    /// There is something to send. Where nobody else brings what it needs to leave, this waits for
    /// it as far as `patience` goes.
    fn kick(&self, patience: Patience);

    /// Makes sure that what the link holds is in the rings, where nobody else does that.
    fn look(&self);

    /// The receiving half waits until `waiter` may have news, at most so long. May return early.
    fn wait(&self, waiter: &Waiter, timeout: Duration);

    /// The receiving half has found something after it waited.
    fn found(&self) {}

    /// The sending half waits until `waiter` may have news, at most so long. May return early.
    fn rest(&self, waiter: &Waiter, timeout: Duration);
}
