//! When to look at a device: [`Pace`] learns how long a batch takes.

use std::time::{Duration, Instant};

/// The shortest time to the next look at a device.
pub(super) const LOOK_MIN: Duration = Duration::from_micros(50);
/// The longest.
pub(super) const LOOK_MAX: Duration = Duration::from_millis(1);

/// See the [module](self).
#[derive(Debug)]
pub(super) struct Pace {
    /// The usual time of a batch alone in the device.
    usual: Duration,
    /// When the device last finished a batch.
    last_ready: Option<Instant>,
    /// The last look at the device, and the time from the one before to it.
    looked: Option<Instant>,
    since: Duration,
    /// The next look.
    look_at: Option<Instant>,
}

impl Default for Pace {
    fn default() -> Self {
        let (last_ready, looked, look_at) = (None, None, None);
        Self { usual: LOOK_MAX, last_ready, looked, since: Duration::ZERO, look_at }
    }
}

impl Pace {
    /// Begins a look, unless it is too early.
    pub(super) fn begin(&mut self, now: Instant) -> bool {
        let is_due = self.look_at.is_none_or(|at| now >= at);
        if is_due {
            self.since = self.looked.map_or(Duration::ZERO, |at| now.saturating_duration_since(at));
            self.looked = Some(now);
        }
        is_due
    }

    /// Plans the next look so much later, or as it was planned before if that is sooner: a block is
    /// called for many reasons, and none of them may put a look off. `None`: the device has
    /// nothing.
    ///
    /// Returns the time until then.
    pub(super) fn plan(&mut self, after: Option<Duration>, now: Instant) -> Option<Duration> {
        let planned = self.look_at.filter(|at| *at > now);
        self.look_at = after.map(|after| planned.map_or(now + after, |at| at.min(now + after)));
        self.look_at.map(|at| at.saturating_duration_since(now))
    }

    /// Returns the time that the device had for a batch: since it was submitted, or since the batch
    /// before was finished.
    fn age(&self, submitted: Instant, now: Instant) -> Duration {
        let begun = self.last_ready.map_or(submitted, |last| last.max(submitted));
        now.saturating_duration_since(begun)
    }

    /// Learns that a batch is finished. `unfinished`: the last look at which it was not.
    pub(super) fn finished(
        &mut self,
        submitted: Instant,
        unfinished: Option<Instant>,
        now: Instant,
    ) {
        // A batch that came long before this look says nothing about the device, and one that came
        // together with another says nothing, either.
        if self.since < 4 * LOOK_MAX && self.last_ready != Some(now) {
            // It was finished between two looks: the middle is the better guess, and where the
            // first look is too late, the next batch is looked at sooner.
            let unfinished = self.age(submitted, unfinished.unwrap_or(submitted));
            let middle = (unfinished + self.age(submitted, now)) / 2;
            self.usual = (3 * self.usual + middle) / 4;
        }
        self.last_ready = Some(now);
    }

    /// Whether the device should have finished a batch. One that needs long for every batch does
    /// not stall.
    pub(super) fn is_overdue(&self, submitted: Instant, now: Instant, stall: Duration) -> bool {
        self.age(submitted, now) > stall.max(4 * self.usual)
    }

    /// Returns the time to the next look at a batch.
    pub(super) fn next(&self, submitted: Instant, now: Instant) -> Duration {
        let age = self.age(submitted, now);
        let left = self.usual.saturating_sub(age);
        // Late: the later, the rarer are the looks.
        let late = age.saturating_sub(self.usual) / 4;
        left.max(late).clamp(LOOK_MIN, LOOK_MAX)
    }
}
