//! The interface through which a port's user has its link driven: by a thread that it wakes, or by
//! itself.

use std::time::Duration;

use millstream_ring::Waiter;

/// Whether a sender can wait for its datagrams' needs: free frames, or a neighbour's answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Patience {
    None,
    Full,
}

/// The driver of the link, as a port's user sees it.
pub(crate) trait Poller: Send + Sync {
    /// Signals that there is something to send. Where no other thread does the rest, this waits for
    /// free frames and answers as far as `patience` allows.
    fn kick(&self, patience: Patience);

    /// Moves the link's received frames to the rings, where no other thread does that.
    fn look(&self);

    /// Waits, in the receiving half, until `waiter` may have been notified, at most for `timeout`.
    /// May return early.
    fn wait(&self, waiter: &Waiter, timeout: Duration);

    /// Reports that the receiving half has found something after it waited.
    fn found(&self) {}

    /// Waits, in the sending half, until `waiter` may have been notified, at most for `timeout`.
    /// May return early.
    fn rest(&self, waiter: &Waiter, timeout: Duration);
}
