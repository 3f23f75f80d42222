//! Waiting for a neighbour's data, without a lock and without losing a wake-up.
//!
//! A [`Waiter`] belongs to one waiting thread and holds at most one token. Neighbours publish their
//! data and then [`notify`](Waiter::notify), which leaves the token; the owner polls for data and,
//! if there is none, [`wait`](Waiter::wait)s, which takes the token. Data published after the
//! owner's poll leaves a token that the wait finds, so the wait returns at once.

use crate::governor::{Governor, Idle, WaitLimits};
use crate::sync::{AtomicU32, Futex, Ordering};
use crate::token;
use std::str::FromStr;
use std::time::{Duration, Instant};

/// Steps of a spin between two clock reads.
const SPINS_PER_CLOCK_READ: u32 = 128;

/// How a thread waits.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum Wait {
    /// Sleep in the kernel until notified: costs a wake-up (microseconds), frees the core.
    #[default]
    Park,
    /// Watch the token: answers within nanoseconds, uses the whole core. Only for a thread that has
    /// a core of its own.
    Spin,
    /// Watch the token for up to 20 µs, yield to others for up to 30 µs more, then sleep; and sleep
    /// at once as long as waits are long anyway: the [governor](crate::governor)'s bounds.
    Adaptive,
}

impl Wait {
    /// Every wait mode, by its name in link strings and files.
    pub const ALL: [Self; 3] = [Self::Spin, Self::Adaptive, Self::Park];

    /// Returns its name in link strings and files.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Park => "park",
            Self::Spin => "spin",
            Self::Adaptive => "adaptive",
        }
    }
}

/// A word that is not the name of a wait mode.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error(
    "`{0}` is not a wait mode: use spin (never sleeps, needs a core), adaptive or park (sleeps)"
)]
pub struct ParseWaitError(String);

impl FromStr for Wait {
    type Err = ParseWaitError;

    fn from_str(text: &str) -> Result<Self, ParseWaitError> {
        let found = Self::ALL.into_iter().find(|wait| wait.name() == text);
        found.ok_or_else(|| ParseWaitError(text.to_owned()))
    }
}

/// The wait state of one thread. See the [module](self) for the protocol.
#[derive(Debug)]
pub struct Waiter {
    state: Futex,
    /// The owner's learnt wait policy; no other thread uses it.
    habit: AtomicU32,
}

impl Default for Waiter {
    fn default() -> Self {
        let habit = Governor::new(WaitLimits::default()).habit();
        Self { state: Futex::default(), habit: AtomicU32::new(habit) }
    }
}

impl Waiter {
    /// Makes a waiter without token.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Leaves the token and wakes the owner if it sleeps. From any thread, and from a signal
    /// handler: an atomic exchange and at most one `futex` call.
    #[inline]
    pub fn notify(&self) {
        if token::leave(&self.state.word) {
            self.state.wake();
        }
    }

    /// Takes the token if it is there.
    pub fn take(&self) -> bool {
        token::take(&self.state.word)
    }

    /// Waits for the token and takes it; returns false if `timeout` passed first (`None`: no
    /// limit). Only the owning thread may wait.
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
            Wait::Adaptive => self.adapt(timeout),
        }
    }

    /// Watches the token for a short while.
    fn watch(&self) -> bool {
        (0..SPINS_PER_CLOCK_READ).any(|_| {
            crate::sync::spin_loop();
            self.take()
        })
    }

    fn spin(&self, timeout: Option<Duration>) -> bool {
        let start = timeout.map(|limit| (Instant::now(), limit));
        loop {
            if self.watch() {
                return true;
            }
            if start.is_some_and(|(start, limit)| start.elapsed() >= limit) {
                return false;
            }
        }
    }

    fn adapt(&self, timeout: Option<Duration>) -> bool {
        let start = Instant::now();
        let now_ns = || u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let limit_ns =
            timeout.map_or(u64::MAX, |limit| u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX));
        let habit = self.habit.load(Ordering::Relaxed);
        let mut governor = Governor::with_habit(WaitLimits::default(), habit);
        let mut now = 0;
        let found = loop {
            match governor.idle(now) {
                _ if now >= limit_ns => break false,
                Idle::Sleep => {
                    let left = timeout.map(|_| Duration::from_nanos(limit_ns - now));
                    break self.park(left);
                }
                Idle::Spin if self.watch() => break true,
                Idle::Spin => {}
                Idle::Yield => {
                    crate::sync::yield_now();
                    if self.take() {
                        break true;
                    }
                }
            }
            now = now_ns();
        };
        governor.busy(now_ns());
        self.habit.store(governor.habit(), Ordering::Relaxed);
        found
    }

    fn park(&self, timeout: Option<Duration>) -> bool {
        let word = &self.state.word;
        let start = timeout.map(|limit| (Instant::now(), limit));
        if token::lie_down(word) {
            loop {
                let left = start.map(|(start, limit)| limit.saturating_sub(start.elapsed()));
                self.state.wait(token::ASLEEP, left);
                // The kernel may wake without reason, so the word decides.
                if word.load(Ordering::Relaxed) != token::ASLEEP || left == Some(Duration::ZERO) {
                    break;
                }
            }
        }
        token::get_up(word)
    }
}
