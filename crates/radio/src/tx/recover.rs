//! Recovery from a closed window without reports: requests credit, and continues.
//!
//! A lost credit report, lost packets or a lost command leave a window that looks full. A playing
//! device reports once per period, an eighth of the window. After a period and [`ASK_AFTER`]
//! without a report, an audit queries the device's count, and again after twice the latter each
//! time. A device that answers opens the window. After [`ASKS`] audits without an answer, a control
//! read checks whether the device is alive. If it is, and its buffer is not just waiting for the
//! time of a burst, the stream is set up again.
//!
//! So from the first send that finds it closed, a window closed by loss opens within a period and
//! [`ASK_AFTER`] and a round trip if the first audit comes through; within 60, 140 or 300 ms in
//! place of the 20 if the second, third or fourth is the first that does. If none does, the stream
//! is examined after a period and [`RECOVERY_MAX`], and set up again within a few more round trips.
//! A device that answers commands in their order behind samples also needs the time to play its
//! buffered samples. All of it runs while the caller sends or waits; time that passes between its
//! calls counts, and no call needs to wait.

use std::time::{Duration, Instant};

use millstream_wire::ctrl::CLIENT_ZERO_PORT;
use millstream_wire::regs::client_zero::PROTO_VER;

use super::core::{QUERY_BYTES_MAX, TxStep};
use super::handshake;
use super::meta::TxError;
use super::streamer::TxStreamer;
use crate::RadioError;
use crate::deadline::YEAR;
use crate::error::io_error;

/// The time of a closed window without a report after which credit is requested.
pub const ASK_AFTER: Duration = Duration::from_millis(20);

/// The count queries before a control read: after 20, 40, 80 and 160 ms.
pub const ASKS: u32 = 4;

/// The end of the last query's wait.
pub const RECOVERY_MAX: Duration = Duration::from_millis(20 + 40 + 80 + 160 + 320);

/// How long a device may take to report that it takes samples again, besides two periods.
pub(super) const PATIENCE: Duration = Duration::from_millis(100);

/// The steps of the recovery from silence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RecoveryStep {
    Nothing,
    Audit,
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
        RecoveryStep::Audit
    }
}

/// Returns how long the device plays `samples` samples.
pub(super) fn play_time(samples: u64, rate_hz: f64) -> Duration {
    Duration::try_from_secs_f64(samples as f64 / rate_hz).unwrap_or(YEAR).min(YEAR)
}

impl TxStreamer {
    /// Executes the steps that are due during a silence.
    pub(super) fn recover(&mut self, now: Instant) -> Result<(), TxError> {
        let closed = self.core.room_packets() == 0;
        match self.core.recover(now, closed) {
            None => Ok(()),
            Some(TxStep::Audit) => self.audit(),
            Some(TxStep::Examine { silent }) => self.examine(silent),
        }
    }

    /// Finds the reason when all count queries stayed without an answer.
    fn examine(&mut self, silent: Duration) -> Result<(), TxError> {
        let asked = self.path.clock.now();
        match self.channel.control().read(CLIENT_ZERO_PORT, PROTO_VER) {
            Ok(_) => {}
            Err(RadioError::Silent { .. } | RadioError::Io { .. }) => {
                return Err(TxError::DeviceSilent {
                    address: self.path.device,
                    claim_lost: self.channel.control().claim_lost(),
                    silent_ms: (silent + self.path.clock.now().duration_since(asked)).as_millis()
                        as u64,
                });
            }
            Err(error) => return Err(error.into()),
        }
        let wait = self.still_holds(silent)?;
        if wait > Duration::ZERO {
            if let Some(stall) = &mut self.core.stall {
                stall.next = self.path.clock.now() + wait;
            }
            return Ok(());
        }
        self.reestablish()
    }

    /// Returns how long the device has a valid reason to take no samples.
    pub(super) fn still_holds(&self, silent: Duration) -> Result<Duration, TxError> {
        let timed = self.core.account.has_times();
        let ticks = timed.then(|| self.channel.time_ticks()).transpose()?;
        Ok(self.core.still_holds(silent, ticks))
    }

    /// Sets the stream up again: the device is alive, but does not answer for the stream.
    fn reestablish(&mut self) -> Result<(), TxError> {
        let opened = handshake::open(&mut self.port, &self.path)?;
        self.core.reopen(opened);
        self.audit()
    }

    /// Queries the device's place, if there is credit for that.
    pub(super) fn audit(&mut self) -> Result<(), TxError> {
        let mut query = [0; QUERY_BYTES_MAX];
        let Some(length) = self.core.audit(&mut query) else { return Ok(()) };
        let device = self.path.device;
        let sent = self.port.tx.send(&query[..length], device);
        sent.map_err(io_error("send to", device)).map_err(TxError::from)
    }
}

#[cfg(test)]
#[path = "recover_tests.rs"]
mod tests;
