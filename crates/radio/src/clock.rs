//! The clock of streams and control: the machine's, or that of a simulation.

use std::thread;
use std::time::{Duration, Instant};

use crate::deadline::deadline_after;

/// Reads the time, and sleeps.
#[derive(Debug, Clone, Copy, Default)]
pub struct Clock(Option<Simulation>);

#[derive(Debug, Clone, Copy)]
struct Simulation {
    now: fn() -> Instant,
    sleep: fn(Duration),
}

impl Clock {
    /// The clock of this machine.
    pub const MACHINE: Clock = Clock(None);

    /// Returns the clock of a simulation. Its `sleep` may return early: every caller checks the
    /// time again.
    #[must_use]
    pub const fn simulated(now: fn() -> Instant, sleep: fn(Duration)) -> Self {
        Self(Some(Simulation { now, sleep }))
    }

    /// Returns whether time passes only in [`Clock::sleep`] and in the ports.
    pub(crate) fn is_simulated(self) -> bool {
        self.0.is_some()
    }

    /// Returns the current time.
    #[must_use]
    pub fn now(self) -> Instant {
        self.0.map_or_else(Instant::now, |simulation| (simulation.now)())
    }

    /// Sleeps for `time`, or less in a simulation.
    pub fn sleep(self, time: Duration) {
        match self.0 {
            Some(simulation) => (simulation.sleep)(time),
            None => thread::sleep(time),
        }
    }

    /// Returns the time left until `until`.
    #[must_use]
    pub fn left(self, until: Instant) -> Duration {
        until.saturating_duration_since(self.now())
    }

    /// Returns the end of a `timeout` that begins now.
    #[must_use]
    pub(crate) fn deadline(self, timeout: Duration) -> Instant {
        deadline_after(self.now(), timeout)
    }
}
