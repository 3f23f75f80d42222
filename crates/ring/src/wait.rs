//! Waiting for a neighbour's news, without a lock and without losing a wake-up.
//!
//! A [`Waiter`] belongs to one waiting thread and holds at most one token. Neighbours publish
//! their news and then [`notify`](Waiter::notify), which leaves the token; the owner looks for
//! news and, having found none, [`wait`](Waiter::wait)s, which takes the token. News published
//! after the owner looked leaves a token that the wait finds, so the wait returns at once.

use crate::sync::{Futex, Ordering};
use std::time::{Duration, Instant};

const EMPTY: u32 = 0;
const TOKEN: u32 = 1;
const ASLEEP: u32 = 2;

/// Looks at the clock once in this many turns of a spin.
const SPINS_PER_CLOCK_READ: u32 = 128;

/// How a thread waits.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum Wait {
    /// Sleep in the kernel until notified: costs a wake-up (microseconds), frees the core.
    #[default]
    Park,
    /// Watch the token: answers within nanoseconds, burns the core. Only for a thread that
    /// was given one.
    Spin,
}

/// One thread's place to wait. See the [module](self) for the protocol.
#[derive(Debug, Default)]
pub struct Waiter {
    state: Futex,
}

impl Waiter {
    /// A waiter without token.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Leaves the token and wakes the owner if it sleeps. From any thread, and from a signal
    /// handler: an atomic exchange and at most one `futex` call.
    pub fn notify(&self) {
        // Release: what the notifier published is visible to whoever takes the token. The
        // exchange (not a plain store) continues the release sequence of earlier notifiers.
        if self.state.word.swap(TOKEN, Ordering::AcqRel) == ASLEEP {
            self.state.wake();
        }
    }

    /// Takes the token if it is there.
    pub fn take(&self) -> bool {
        self.state.word.load(Ordering::Relaxed) == TOKEN
            && self.state.word.swap(EMPTY, Ordering::AcqRel) == TOKEN
    }

    /// Waits for the token and takes it; false if `timeout` passed first (`None`: no limit).
    /// Only the owning thread may wait.
    pub fn wait(&self, how: Wait, timeout: Option<Duration>) -> bool {
        if self.take() {
            return true;
        }
        if timeout == Some(Duration::ZERO) {
            return false;
        }
        match how {
            Wait::Spin => self.spin(timeout),
            Wait::Park => self.park(timeout),
        }
    }

    fn spin(&self, timeout: Option<Duration>) -> bool {
        let start = timeout.map(|limit| (Instant::now(), limit));
        loop {
            for _ in 0..SPINS_PER_CLOCK_READ {
                if self.take() {
                    return true;
                }
                crate::sync::spin_loop();
            }
            if start.is_some_and(|(start, limit)| start.elapsed() >= limit) {
                return false;
            }
        }
    }

    fn park(&self, timeout: Option<Duration>) -> bool {
        let word = &self.state.word;
        let start = timeout.map(|limit| (Instant::now(), limit));
        if word.compare_exchange(EMPTY, ASLEEP, Ordering::AcqRel, Ordering::Acquire).is_ok() {
            loop {
                let left = start.map(|(start, limit)| limit.saturating_sub(start.elapsed()));
                self.state.wait(ASLEEP, left);
                // The kernel may wake without reason, so the word decides.
                if word.load(Ordering::Relaxed) != ASLEEP || left == Some(Duration::ZERO) {
                    break;
                }
            }
        }
        word.swap(EMPTY, Ordering::AcqRel) == TOKEN
    }
}
