//! How long samples are under way: from their sending to the device's report of their outcome.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use super::TxLedger;

/// The most places whose outcome is awaited.
const MARKS_MAX: usize = 256;

/// Measures the delay of a transmit stream by its ledger: from the time at which the stream took
/// samples to the report that the device has taken them for transmission, or lost them. Only this
/// machine's clock is used. The delay contains the way of the report, and the time until
/// [`TxDelay::follow`] is called; the time that the call took which sent them is not in it.
#[derive(Debug)]
pub struct TxDelay {
    /// Numbers of samples that had been taken, each with its time; the next one first.
    marks: VecDeque<(u64, Instant)>,
    /// Fewest samples between two marks.
    step: u64,
    last: u64,
}

impl TxDelay {
    /// Returns the meter of a stream that can have so many samples in flight.
    #[must_use]
    pub fn new(window_samples: u64) -> Self {
        let step = window_samples.div_ceil(MARKS_MAX as u64 / 2).max(1);
        Self { marks: VecDeque::with_capacity(MARKS_MAX), step, last: 0 }
    }

    /// Takes the ledger of the stream at `now`, and returns the delay of the newest samples whose
    /// outcome it has, if there are such since the last call.
    pub fn follow(&mut self, ledger: &TxLedger, now: Instant) -> Option<Duration> {
        let settled = ledger.accepted - ledger.in_flight;
        let mut found = None;
        while let Some((_, at)) = self.marks.front().filter(|mark| mark.0 <= settled) {
            found = Some(now.saturating_duration_since(*at));
            self.marks.pop_front();
        }
        let is_far = ledger.accepted >= self.last + self.step || self.marks.is_empty();
        let is_new = ledger.accepted > self.last && ledger.in_flight > 0;
        if is_far && is_new && self.marks.len() < MARKS_MAX {
            self.marks.push_back((ledger.accepted, now));
            self.last = ledger.accepted;
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_delay_is_the_time_until_the_outcome_of_the_samples_is_known() {
        let begin = Instant::now();
        let at = |ms: u64| begin + Duration::from_millis(ms);
        let ledger = |accepted, in_flight| {
            let mut ledger = TxLedger::default();
            (ledger.accepted, ledger.in_flight) = (accepted, in_flight);
            ledger
        };
        let mut delay = TxDelay::new(1000);
        assert_eq!(delay.follow(&ledger(0, 0), at(0)), None);
        assert_eq!(delay.follow(&ledger(100, 100), at(10)), None);
        assert_eq!(delay.follow(&ledger(200, 200), at(20)), None);
        // The report is about a part of the first samples, then about all of them.
        assert_eq!(delay.follow(&ledger(200, 150), at(30)), None);
        assert_eq!(delay.follow(&ledger(300, 200), at(45)), Some(Duration::from_millis(35)));
        // The newest of several that are reported at once.
        let both = Some(Duration::from_millis(15));
        assert_eq!(delay.follow(&ledger(300, 0), at(60)), both);
        assert_eq!(delay.follow(&ledger(300, 0), at(90)), None, "nothing new");
    }

    #[test]
    fn it_needs_no_more_memory_than_at_the_start() {
        let mut delay = TxDelay::new(1_000_000);
        let (begin, room) = (Instant::now(), delay.marks.capacity());
        let mut ledger = TxLedger::default();
        for _ in 0..10_000 {
            ledger.accepted += 10_000;
            ledger.in_flight += 10_000;
            delay.follow(&ledger, begin);
        }
        assert_eq!((delay.marks.capacity(), delay.marks.len()), (room, MARKS_MAX));
    }
}
