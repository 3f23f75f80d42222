//! Samples that stop while the device answers.

use std::time::{Duration, Instant};

use super::core::RxCore;
use super::meta::RxError;
use super::state::StreamState;
use crate::Cause;

/// How long a running stream goes on without a sample that can be used, while its device answers.
/// Where the longest normal silence, of four packets at least, is more than half of that, twice
/// that silence holds instead. The wait for a start ahead of the device's running clock does not
/// count.
pub const SAMPLES_STOPPED: Duration = Duration::from_secs(5);

/// A longer pause between two checks is the caller's, and no silence of the device.
const PAUSE_MAX: Duration = Duration::from_secs(1);

/// The newest packet that was taken.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct NewestSample {
    /// The number of packets with it.
    packets: u64,
    /// Its time, or that at which the first one was due; the same, moved forward by the pauses of
    /// the caller; and that of the last check.
    times: Option<(Instant, Instant, Instant)>,
    /// The device's time at the last check whether any was due, ticks.
    device_ticks: Option<u64>,
}

impl RxCore {
    /// Checks at `now` that samples come: otherwise counts as lost what was due.
    ///
    /// # Errors
    /// [`RxError::SamplesStopped`].
    pub(super) fn check_samples(&mut self, now: Instant) -> Result<(), RxError> {
        let packets = self.counters.packets;
        let same = packets == self.newest_sample.packets && !self.run.is_idle();
        let Some((since, mut from, checked)) = self.newest_sample.times.filter(|_| same) else {
            self.newest_sample.packets = packets;
            self.newest_sample.times = Some((now, now, now));
            return Ok(());
        };
        from += now.saturating_duration_since(checked).saturating_sub(PAUSE_MAX);
        self.newest_sample.times = Some((since, from, now));
        let longest = SAMPLES_STOPPED.max(self.silence_limit().saturating_mul(2));
        if now.saturating_duration_since(from) < longest {
            return Ok(());
        }
        self.newest_sample.times = None;
        let silent = now.saturating_duration_since(since);
        let samples = match self.run {
            StreamState::Finite { left, .. } => left,
            StreamState::Continuous { .. } => {
                (silent.as_secs_f64() * self.path.rate.samples_hz()) as u64
            }
            StreamState::Stopping { .. } | StreamState::Idle => 0,
        };
        self.lose_due(samples);
        if matches!(self.run, StreamState::Finite { .. }) {
            self.burst_over();
        }
        let (address, silent_ms) = (self.path.device, silent.as_millis() as u64);
        Err(RxError::SamplesStopped { address, silent_ms, samples })
    }

    /// Returns whether the last check found that the samples have stopped.
    pub(super) fn has_stopped(&self) -> bool {
        self.newest_sample.times.is_none()
    }

    /// Counts samples as lost that were due and did not come.
    pub(super) fn lose_due(&mut self, samples: u64) {
        self.lose_rest(samples, Cause::Unknown);
        self.tracker.lose_end(samples.div_ceil(self.samples_per_packet.into()), samples);
    }

    /// Returns whether no packet was due yet at the device's time `ticks`; as long as that time
    /// goes on, this wait is intended. A restart is none: a radio whose message about the overrun
    /// was not acknowledged takes every start, and executes none.
    pub(super) fn is_waiting(&mut self, ticks: u64, now: Instant) -> bool {
        let goes_on = self.newest_sample.device_ticks.replace(ticks) != Some(ticks);
        let is_early = self.is_early(ticks);
        if is_early && goes_on && self.run.restarted().is_none() {
            self.newest_sample.times = Some((now, now, now));
        }
        is_early
    }
}
