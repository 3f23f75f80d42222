//! Recovery from a closed window without reports: requests credit, and continues.
//!
//! A lost credit report, lost packets or a lost command leave a window that looks full. A playing
//! device reports once per period, an eighth of the window. After a period and [`ASK_AFTER`]
//! without a report, a query asks for the device's place, and again after twice the latter each
//! time. A device that answers opens the window. After [`ASKS`] queries without an answer, a
//! control read checks whether the device is alive. If it is, and its buffer is not just waiting
//! for the time of a burst, the stream is set up again.
//!
//! So from the first send that finds it closed, a window closed by loss opens within a period and
//! [`ASK_AFTER`] and a round trip if the first query comes through; within 60, 140 or 300 ms in
//! place of the 20 if the second, third or fourth is the first that does. If none does, the stream
//! is examined after a period and [`RECOVERY_MAX`], and set up again within a few more round trips.
//! A device that answers commands in their order behind samples also needs the time to play its
//! buffered samples. All of it runs while the caller sends or waits; time that passes between its
//! calls counts, and no call needs to wait.

use std::time::{Duration, Instant};

use crate::deadline::YEAR;

/// The time of a closed window without a report after which credit is requested.
pub const ASK_AFTER: Duration = Duration::from_millis(20);

/// The queries before a control read: after 20, 40, 80 and 160 ms.
pub const ASKS: u32 = 4;

/// The end of the last query's wait.
pub const RECOVERY_MAX: Duration = Duration::from_millis(20 + 40 + 80 + 160 + 320);

/// How long a device may take to report that it takes samples again, besides two periods.
pub(super) const PATIENCE: Duration = Duration::from_millis(100);

/// The steps of the recovery from silence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RecoveryStep {
    Nothing,
    Query,
    /// All count queries have had their time.
    Examination,
}

/// The schedule of the recovery from a device's silence.
#[derive(Debug, Clone, Copy)]
pub(super) struct SilentDevice {
    since: Instant,
    /// The time of the next step.
    next: Instant,
    asked: u32,
}

impl SilentDevice {
    /// Begins a silence at `now`, of a device that reports once per `period`.
    pub fn new(now: Instant, period: Duration) -> Self {
        Self { since: now, next: now + ASK_AFTER + period, asked: 0 }
    }

    /// Returns the beginning of the silence.
    pub fn since(&self) -> Instant {
        self.since
    }

    /// Puts the next step off: the device has a valid reason for its silence.
    pub fn put_off(&mut self, to: Instant) {
        self.next = to;
    }

    /// Returns whether no step has been due.
    pub fn is_first(&self) -> bool {
        self.asked == 0
    }

    /// Returns the time of the next step.
    pub fn next(&self) -> Instant {
        self.next
    }

    /// Returns the step that is due at `now`, once.
    pub fn due(&mut self, now: Instant) -> RecoveryStep {
        if now < self.next {
            return RecoveryStep::Nothing;
        }
        if self.asked == ASKS {
            return RecoveryStep::Examination;
        }
        self.asked += 1;
        self.next = now + ASK_AFTER * (1 << self.asked);
        RecoveryStep::Query
    }
}

/// Returns how long the device plays `samples` samples.
pub(super) fn play_time(samples: u64, rate_hz: f64) -> Duration {
    Duration::try_from_secs_f64(samples as f64 / rate_hz).unwrap_or(YEAR).min(YEAR)
}

#[cfg(test)]
#[path = "recover_tests.rs"]
mod tests;
