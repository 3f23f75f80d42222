//! A link that the users of its ports drive themselves: no thread, no wake-ups between threads.
//!
//! A receiving half drives the link while it polls or waits; a sending half drives the transmit
//! direction with each send. They may be on several threads, so a lock protects the link; on one
//! thread it is never contended, and it is never held while waiting.
//!
//! A poll receives for all ports. Of several waiting users one polls; the others sleep until it has
//! something for them, and make sure themselves that one user always polls. A sender wakes the
//! receiving half of its own port, because an answer is to be expected.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::Duration;

use millstream_ring::governor::{Governor, Idle, WaitLimits};
use millstream_ring::{Doorbell, Wait, Waiter};

use crate::port::{Patience, Poller, PortState};

use super::clock::now_ns;
use super::host::Host;

/// The pause between two polls of a user that waits for free frames, or for a neighbour.
const REST: Duration = Duration::from_micros(50);

/// The longest that a send drives the link for an unknown neighbour; later it waits without driving
/// it.
const RESOLVE_NS: u64 = 1_000_000_000;

/// The longest sleep of a user whose link is driven by that of another port.
const NAP: Duration = Duration::from_millis(1);
/// The same where the other user never sleeps: each poll would take the CPU from the spinning user.
const LONG_NAP: Duration = Duration::from_millis(4);
/// The first nap after the user has sent: the thread that polled may wait for the answer now.
const ANSWER_NAP: Duration = Duration::from_micros(200);

/// Polls of others between two own ones that show that they drive the link.
const OTHERS_DRIVE: u64 = 2;
/// Polls of others that show that they never sleep.
const OTHERS_SPIN: u64 = 200;

/// A link without a thread.
pub(super) struct Inline {
    host: Mutex<Option<Host>>,
    /// The descriptor to wait on; a duplicate, because the link may be busy meanwhile.
    poll: Mutex<Option<Arc<OwnedFd>>>,
    /// Rung when a user other than the one that sleeps on the link has received something.
    pub bell: Arc<Doorbell>,
    /// Locked by the user that sleeps on the link.
    bed: Mutex<()>,
    /// Polls of all users.
    looks: AtomicU64,
    governor: Mutex<Governor>,
    /// Nanoseconds until something is due, as of the last step; in units of 1024.
    patience: AtomicU32,
}

impl Inline {
    pub fn new(host: Host, bell: Arc<Doorbell>) -> std::io::Result<Self> {
        let poll = host.poll_fd().map(|fd| fd.try_clone_to_owned()).transpose()?;
        Ok(Self {
            host: Mutex::new(Some(host)),
            poll: Mutex::new(poll.map(Arc::new)),
            bell,
            bed: Mutex::new(()),
            looks: AtomicU64::new(0),
            governor: Mutex::new(Governor::new(WaitLimits::default())),
            patience: AtomicU32::new(0),
        })
    }

    /// Locks the link; `None` after it was closed.
    pub fn host(&self) -> MutexGuard<'_, Option<Host>> {
        self.host.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Closes the link.
    pub fn close(&self) {
        self.poll.lock().unwrap_or_else(PoisonError::into_inner).take();
        drop(self.host().take());
    }

    fn step(&self) -> usize {
        let mut host = self.host();
        let Some(host) = host.as_mut() else { return 0 };
        let now = now_ns();
        let work = host.step(now);
        // Under the lock, so that no other thread counts meanwhile.
        self.looks.store(self.looks.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        let patience = if work.is_none() { host.patience_ns(now) / 1024 } else { 0 };
        self.patience.store(u32::try_from(patience).unwrap_or(u32::MAX), Ordering::Relaxed);
        if work.received > 0 {
            // After the ports' waiters have got their tokens: see `sleep`.
            self.bell.nudge();
        }
        work.received
    }

    /// Sends everything that can leave, in as many batches as needed.
    fn push(&self) {
        let mut host = self.host();
        let Some(host) = host.as_mut() else { return };
        while host.turn_out(now_ns()).sent > 0 && host.has_departures() {}
    }

    fn resolving(&self) -> bool {
        self.host().as_ref().is_some_and(Host::is_resolving)
    }
}

/// The handle with which a port's user drives its link.
pub(super) struct InlineDrive {
    inline: Arc<Inline>,
    wait: Wait,
    /// The state of its port.
    state: Arc<PortState>,
    /// The receiving half leaves polling to others.
    naps: AtomicBool,
    /// The sending half has sent since the receiving half waited last.
    sent: AtomicBool,
    /// The receiving half tolerates latency.
    patient: bool,
    /// Own polls, and those of others when the user waited last.
    mine: AtomicU64,
    others: AtomicU64,
}

impl Poller for InlineDrive {
    fn kick(&self, patience: Patience) {
        self.inline.push();
        if self.patient || self.naps.load(Ordering::Relaxed) {
            // Before the token, with which the receiving half sees it.
            self.sent.store(true, Ordering::Relaxed);
            self.state.rx_waiter.notify();
        }
        // A sender that cannot wait polls for received frames anyway, and sends again.
        if patience == Patience::None || !self.inline.resolving() {
            return;
        }
        let began = now_ns();
        // The neighbour's answer is received like every other frame.
        while self.inline.resolving() && now_ns() - began < RESOLVE_NS {
            if self.turn() == 0 {
                std::thread::sleep(REST);
            }
        }
        // Datagrams that stayed in the ring meanwhile.
        self.inline.push();
    }

    fn look(&self) {
        self.turn();
    }

    fn wait(&self, waiter: &Waiter, timeout: Duration) {
        if waiter.take() {
            return;
        }
        let sent = self.sent.swap(false, Ordering::Relaxed);
        match self.looks_of_others() {
            // A user in spin mode polls itself: others that happened to poll twice while it was
            // away may not do so the next time.
            _ if self.wait == Wait::Spin => {}
            0..OTHERS_DRIVE => {}
            others => {
                let nap = match others {
                    _ if sent => ANSWER_NAP,
                    OTHERS_SPIN.. => LONG_NAP,
                    _ => NAP,
                };
                self.naps.store(true, Ordering::Relaxed);
                waiter.wait(Wait::Park, Some(timeout.min(nap)));
                self.naps.store(false, Ordering::Relaxed);
                return;
            }
        }
        let idle = match self.wait {
            Wait::Spin => Idle::Spin,
            Wait::Park => Idle::Sleep,
            _ => self.governor().idle(now_ns()),
        };
        match idle {
            Idle::Spin => std::hint::spin_loop(),
            Idle::Yield => std::thread::yield_now(),
            Idle::Sleep => self.sleep(waiter, timeout),
        }
    }

    fn found(&self) {
        if self.wait == Wait::Adaptive {
            self.governor().busy(now_ns());
        }
    }

    fn rest(&self, _: &Waiter, timeout: Duration) {
        if self.turn() == 0 {
            std::thread::sleep(REST.min(timeout));
        }
    }
}

impl InlineDrive {
    /// Creates the handle of a user that waits like this.
    pub fn new(inline: Arc<Inline>, wait: Wait, patient: bool, state: Arc<PortState>) -> Self {
        let (mine, others) = (0.into(), inline.looks.load(Ordering::Relaxed).into());
        let (naps, sent) = (false.into(), false.into());
        Self { inline, wait, state, naps, sent, patient, mine, others }
    }

    fn turn(&self) -> usize {
        // The sending half may poll, too; an uncounted poll here counts as another user's.
        self.mine.store(self.mine.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        self.inline.step()
    }

    /// Returns how often users of other ports have polled since the last call.
    fn looks_of_others(&self) -> u64 {
        let looks = self.inline.looks.load(Ordering::Relaxed);
        let others = looks.saturating_sub(self.mine.load(Ordering::Relaxed));
        others.saturating_sub(self.others.swap(others, Ordering::Relaxed))
    }

    fn governor(&self) -> MutexGuard<'_, Governor> {
        self.inline.governor.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn sleep(&self, waiter: &Waiter, timeout: Duration) {
        let inline = &self.inline;
        let bed = match inline.bed.try_lock() {
            Ok(bed) => bed,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => {
                // The user that sleeps there wakes when something arrives, and receives it for all.
                waiter.wait(Wait::Park, Some(timeout.min(NAP)));
                return;
            }
        };
        let patience_ns = u64::from(inline.patience.load(Ordering::Relaxed)) * 1024;
        let timeout = timeout.min(Duration::from_nanos(patience_ns));
        let poll = inline.poll.lock().unwrap_or_else(PoisonError::into_inner).clone();
        // If another user has received something since the last poll, it has left a token, or it
        // wakes this one.
        let look = || waiter.take();
        let slept = match &poll {
            Some(fd) => inline.bell.wait_unless(look, &[fd.as_fd()], Some(timeout)),
            None => inline.bell.wait_unless(look, &[], Some(timeout)),
        };
        drop(bed);
        if slept.is_err() {
            std::thread::sleep(REST);
        }
    }
}
