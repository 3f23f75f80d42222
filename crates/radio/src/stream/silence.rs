//! How long nothing came: from the device, and of its samples.

use std::time::{Duration, Instant};

use super::rate::StreamRate;

/// How long a running stream goes on without a sample that can be used, while its device answers.
/// Where the longest normal silence, of four packets at least, is more than half of that, twice
/// that silence holds instead. The wait for a start ahead of the device's running clock does not
/// count.
pub const SAMPLES_STOPPED: Duration = Duration::from_secs(5);

/// A longer pause between two checks is the caller's, and no silence of the device.
const PAUSE_MAX: Duration = Duration::from_secs(1);

/// The longest sleep between checks of the stream's state.
pub(super) const SLEEP_MAX: Duration = Duration::from_millis(50);

/// The longest part of a pause between two polls of the port that counts as silence of the device:
/// packets during a longer absence of the caller are unknown.
const AWAY_MAX: Duration = SLEEP_MAX;

/// The interval of credit reports while no packet comes: the last report may be lost.
const REPORT_AGAIN: Duration = Duration::from_millis(50);

/// The silence of a stream's port.
#[derive(Debug)]
pub(super) struct Silence {
    /// The longest normal silence.
    limit: Duration,
    packet_ticks: u64,
    limit_ticks: f64,
    /// The time of the last packet, moved forward by the time in which the port was not polled.
    last_heard: Instant,
    last_look: Instant,
    /// The current batch contained a packet from the device.
    heard: bool,
    last_idle: Instant,
    /// The device's time at the last check, and at the first in this run, ticks.
    ticks: Option<u64>,
    first_ticks: Option<u64>,
    /// The number of packets with the newest one that was taken.
    packets: u64,
    /// Its time, or that at which the first one was due; the same, moved forward by the pauses of
    /// the caller; and that of the last check.
    times: Option<(Instant, Instant, Instant)>,
    /// The device's time at the last check whether any was due, ticks.
    waiting_ticks: Option<u64>,
}

impl Silence {
    /// Returns that of a stream with packets of `samples` samples; `max` is the longest normal
    /// silence of a fast stream.
    pub fn new(max: Duration, rate: StreamRate, samples: u64, now: Instant) -> Self {
        // Slow streams have long packets.
        let packet_s = samples as f64 / rate.samples_hz();
        let packets = Duration::try_from_secs_f64(4.0 * packet_s).unwrap_or(Duration::MAX);
        let limit = max.max(packets);
        Self {
            limit,
            packet_ticks: rate.ticks(samples),
            limit_ticks: limit.as_secs_f64() * rate.ticks_hz,
            last_heard: now,
            last_look: now,
            heard: false,
            last_idle: now,
            ticks: None,
            first_ticks: None,
            packets: 0,
            times: None,
            waiting_ticks: None,
        }
    }

    /// Begins a burst.
    pub fn begin(&mut self) {
        (self.ticks, self.first_ticks) = (None, None);
        (self.packets, self.times, self.waiting_ticks) = (0, None, None);
    }

    /// Notes that the port is polled at `now`. The caller's absence before is no silence.
    pub fn wait(&mut self, now: Instant) {
        let away = now.saturating_duration_since(self.last_look).saturating_sub(AWAY_MAX);
        self.last_heard = (self.last_heard + away).min(now);
    }

    /// Takes the time at which datagrams were received.
    pub fn look(&mut self, now: Instant) {
        (self.last_look, self.heard) = (now, false);
    }

    /// Returns that time.
    pub fn last_look(&self) -> Instant {
        self.last_look
    }

    /// Notes a packet of the device.
    pub fn hear(&mut self) {
        self.heard = true;
    }

    /// Returns whether a packet of the device came since the last look.
    pub fn has_heard(&self) -> bool {
        self.heard
    }

    /// Concludes from the datagrams since the last look. Returns whether one was of the device.
    pub fn listen(&mut self) -> bool {
        if self.heard {
            self.last_heard = self.last_look;
        }
        self.heard
    }

    /// Notes that the device answered at `now`.
    pub fn answered(&mut self, now: Instant) {
        self.last_heard = now;
    }

    /// Returns how long the device has been silent.
    pub fn lasts(&self, now: Instant) -> Duration {
        now.saturating_duration_since(self.last_heard)
    }

    /// Returns whether it has been silent for longer than is normal.
    pub fn is_long(&self, now: Instant) -> bool {
        self.lasts(now) > self.limit
    }

    /// Returns whether a report of credit is due because of the silence, and whether nothing has
    /// come since the one before.
    pub fn is_report_due(&mut self, now: Instant) -> Option<bool> {
        if now.duration_since(self.last_idle) < REPORT_AGAIN {
            return None;
        }
        self.last_idle = now;
        Some(self.lasts(now) >= REPORT_AGAIN)
    }

    /// Returns whether no packet was due yet at the device's time `now`, ticks: the start lies
    /// ahead (`awaited`, by no more than `lead` where that is known), or the radio is slow and the
    /// next packet, whose first sample is `due`, is not complete.
    pub fn is_early(
        &mut self,
        now: u64,
        awaited: Option<u64>,
        lead: Option<u64>,
        due: Option<u64>,
    ) -> bool {
        if let Some(start) = awaited.filter(|start| now < *start) {
            // Only a start whose clock was set back lies further ahead.
            return lead.is_none_or(|lead| start - now <= lead);
        }
        if self.ticks.replace(now) == Some(now) {
            // A radio whose time does not advance gives no estimate of the next packet.
            return false;
        }
        // The silence before a start is not the device's: it began with the start.
        if awaited.is_some_and(|start| ((now - start) as f64) < self.limit_ticks) {
            return true;
        }
        // After an immediate start, the first packet is due a packet's time after the first check.
        let due = due.unwrap_or(*self.first_ticks.get_or_insert(now));
        let left = due.wrapping_add(self.packet_ticks).wrapping_sub(now);
        // A packet further ahead means a clock that was set back.
        (1..=2 * self.packet_ticks).contains(&left)
    }

    /// Notes that at the device's time `ticks` no packet was due; as long as that time goes on, the
    /// wait is intended.
    pub fn note_waiting(&mut self, ticks: u64, is_waiting: bool, now: Instant) {
        let goes_on = self.waiting_ticks.replace(ticks) != Some(ticks);
        if is_waiting && goes_on {
            self.times = Some((now, now, now));
        }
    }

    /// Checks at `now` that samples come, of which `packets` packets have. Returns how long there
    /// was none, if that is too long.
    pub fn check_samples(&mut self, packets: u64, is_idle: bool, now: Instant) -> Option<Duration> {
        let same = packets == self.packets && !is_idle;
        let Some((since, mut from, checked)) = self.times.filter(|_| same) else {
            (self.packets, self.times) = (packets, Some((now, now, now)));
            return None;
        };
        from += now.saturating_duration_since(checked).saturating_sub(PAUSE_MAX);
        self.times = Some((since, from, now));
        let longest = SAMPLES_STOPPED.max(self.limit.saturating_mul(2));
        if now.saturating_duration_since(from) < longest {
            return None;
        }
        self.times = None;
        Some(now.saturating_duration_since(since))
    }

    /// Returns whether the last check found that the samples have stopped.
    pub fn has_stopped(&self) -> bool {
        self.times.is_none()
    }
}
