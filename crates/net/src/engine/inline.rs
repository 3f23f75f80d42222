//! A link that its only port's user drives itself: no thread, no wake-ups between threads.
//!
//! The receiving half drives the link while it looks or waits; the sending half drives the way
//! out with each send. They may be on two threads, so a lock stands between them; on one thread
//! it is never contended, and nobody holds it while waiting.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use millstream_ring::governor::{Governor, Idle, Limits};
use millstream_ring::{Doorbell, Wait, Waiter};

use crate::port::Drive;

use super::clock::now_ns;
use super::host::Host;

/// How long a user that waits for free frames, or for a neighbour, rests between two looks.
const REST: Duration = Duration::from_micros(50);

/// The longest that a send drives the link for an unknown neighbour; then it waits unattended.
const RESOLVE_NS: u64 = 1_000_000_000;

/// A link without a thread.
pub(super) struct Inline {
    host: Mutex<Option<Host>>,
    /// To wait on; a duplicate, because the link may be busy meanwhile.
    poll: Mutex<Option<Arc<OwnedFd>>>,
    /// Rung when the sending half has received something for the other.
    pub bell: Arc<Doorbell>,
    governor: Mutex<Governor>,
    /// Nanoseconds until something is due, as of the last turn; in units of 1024.
    patience: AtomicU32,
}

impl Inline {
    pub fn new(host: Host, bell: Arc<Doorbell>) -> std::io::Result<Self> {
        let poll = host.poll_fd().map(|fd| fd.try_clone_to_owned()).transpose()?;
        Ok(Self {
            host: Mutex::new(Some(host)),
            poll: Mutex::new(poll.map(Arc::new)),
            bell,
            governor: Mutex::new(Governor::new(Limits::default())),
            patience: AtomicU32::new(0),
        })
    }

    /// The link, while it is open.
    pub fn host(&self) -> MutexGuard<'_, Option<Host>> {
        self.host.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Closes the link.
    pub fn close(&self) {
        self.poll.lock().unwrap_or_else(PoisonError::into_inner).take();
        drop(self.host().take());
    }

    fn turn(&self) -> usize {
        let mut host = self.host();
        let Some(host) = host.as_mut() else { return 0 };
        let now = now_ns();
        let work = host.turn(now);
        let patience = if work.is_none() { host.patience_ns(now) / 1024 } else { 0 };
        self.patience.store(u32::try_from(patience).unwrap_or(u32::MAX), Ordering::Relaxed);
        work.received
    }

    /// Sends all that can leave, however many batches it is.
    fn push(&self) {
        let mut host = self.host();
        let Some(host) = host.as_mut() else { return };
        while host.turn_out(now_ns()).sent > 0 && host.has_departures() {}
    }

    fn resolving(&self) -> bool {
        self.host().as_ref().is_some_and(Host::is_resolving)
    }
}

/// What the port's user needs to drive its link.
pub(super) struct InlineDrive {
    pub inline: Arc<Inline>,
    pub wait: Wait,
}

impl Drive for InlineDrive {
    fn kick(&self) {
        self.inline.push();
        if !self.inline.resolving() {
            return;
        }
        let began = now_ns();
        // The answer to what is asked of the neighbour comes in like everything else.
        while self.inline.resolving() && now_ns() - began < RESOLVE_NS {
            if self.inline.turn() > 0 {
                self.inline.bell.ring();
            } else {
                std::thread::sleep(REST);
            }
        }
        // What stayed in the ring meanwhile.
        self.inline.push();
    }

    fn look(&self) {
        self.inline.turn();
    }

    fn wait(&self, waiter: &Waiter, timeout: Duration) {
        if waiter.take() {
            return;
        }
        let idle = match self.wait {
            Wait::Spin => Idle::Spin,
            Wait::Park => Idle::Sleep,
            _ => {
                let mut governor =
                    self.inline.governor.lock().unwrap_or_else(PoisonError::into_inner);
                governor.idle(now_ns())
            }
        };
        match idle {
            Idle::Spin => std::hint::spin_loop(),
            Idle::Yield => std::thread::yield_now(),
            Idle::Sleep => self.sleep(timeout),
        }
    }

    fn found(&self) {
        if self.wait == Wait::Adaptive {
            let mut governor = self.inline.governor.lock().unwrap_or_else(PoisonError::into_inner);
            governor.busy(now_ns());
        }
    }

    fn rest(&self, _: &Waiter, timeout: Duration) {
        if self.inline.turn() > 0 {
            self.inline.bell.ring();
        } else {
            std::thread::sleep(REST.min(timeout));
        }
    }
}

impl InlineDrive {
    fn sleep(&self, timeout: Duration) {
        let patience_ns = u64::from(self.inline.patience.load(Ordering::Relaxed)) * 1024;
        let timeout = timeout.min(Duration::from_nanos(patience_ns));
        let poll = self.inline.poll.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let slept = match &poll {
            Some(fd) => self.inline.bell.wait(&[fd.as_fd()], Some(timeout)),
            None => self.inline.bell.wait(&[], Some(timeout)),
        };
        if slept.is_err() {
            std::thread::sleep(REST);
        }
    }
}
