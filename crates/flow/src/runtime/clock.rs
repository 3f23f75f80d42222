//! When a partition's thread reads the clock.
//!
//! A clock read costs about as much as a small call of a block. Where sweeps are long this is
//! negligible, and every sweep begins with a read; where they are short, a few share one.

use std::time::{Duration, Instant};

/// Sweeps share a clock read if all of them together take less than this.
const STALE_MAX: Duration = Duration::from_micros(20);
/// The most sweeps that share a read, so that a long sweep among short ones is noticed soon.
const SHARE_MAX: u32 = 4;
/// Sweeps are extended by more calls if they stay below this.
const SWEEP_MAX: Duration = Duration::from_micros(40);
/// The most calls of a block in one sweep.
const ROUNDS_MAX: u32 = 32;

/// The clock of one thread.
#[derive(Debug)]
pub(super) struct Clock {
    looked: Instant,
    /// Sweeps since the last read.
    sweeps: u32,
    /// Sweeps that may share a read.
    share: u32,
    rounds: u32,
}

impl Clock {
    /// Makes a clock for a thread that has just read the time.
    pub(super) fn new(now: Instant) -> Self {
        Self { looked: now, sweeps: 0, share: 1, rounds: 1 }
    }

    /// Begins a sweep; returns whether the sweep needs a clock read.
    #[inline]
    pub(super) fn is_due(&mut self) -> bool {
        self.sweeps += 1;
        self.sweeps > self.share
    }

    /// Notes a clock read at the beginning of a sweep.
    #[inline]
    pub(super) fn looked(&mut self, now: Instant) {
        let sweeps = self.sweeps.saturating_sub(1).max(1);
        let each = now.saturating_duration_since(self.looked) / sweeps;
        self.share = if each * SHARE_MAX < STALE_MAX { SHARE_MAX } else { 1 };
        if each * 2 < SWEEP_MAX {
            self.rounds = (2 * self.rounds).min(ROUNDS_MAX);
        } else if each > SWEEP_MAX {
            self.rounds = (self.rounds / 2).max(1);
        }
        (self.looked, self.sweeps) = (now, 1);
    }

    /// Returns how often a chain that delays no other block may run in one sweep: so often that the
    /// fixed work of a sweep is a small share, and the sweep still short.
    #[inline]
    pub(super) fn rounds(&self) -> u32 {
        self.rounds
    }

    /// Notes the clock read at the end of a wait: the next sweep needs none.
    pub(super) fn waited(&mut self, now: Instant) {
        (self.looked, self.sweeps) = (now, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the clock reads in a thousand sweeps that take so long each, and the largest age of
    /// the time at the beginning of a sweep.
    fn run(sweep: impl Fn(u32) -> Duration) -> (u32, Duration) {
        let start = Instant::now();
        let (mut clock, mut now, mut known) = (Clock::new(start), start, start);
        let (mut looks, mut oldest) = (0, Duration::ZERO);
        for n in 0..1000 {
            if clock.is_due() {
                clock.looked(now);
                (known, looks) = (now, looks + 1);
            }
            oldest = oldest.max(now - known);
            now += sweep(n);
        }
        (looks, oldest)
    }

    #[test]
    fn short_sweeps_share_a_look_and_long_ones_do_not() {
        let micros = Duration::from_micros;
        let (looks, oldest) = run(|_| micros(1));
        assert!((250..260).contains(&looks) && oldest <= micros(3), "{looks} {oldest:?}");
        assert_eq!(run(|_| micros(5)), (999, Duration::ZERO));
    }

    #[test]
    fn short_turns_are_many_and_long_ones_are_one() {
        let rounds = |round: Duration| {
            let start = Instant::now();
            let (mut clock, mut now) = (Clock::new(start), start);
            for _ in 0..100 {
                if clock.is_due() {
                    clock.looked(now);
                }
                now += round * clock.rounds();
            }
            clock.rounds()
        };
        let nanos = Duration::from_nanos;
        assert_eq!(rounds(nanos(150)), ROUNDS_MAX);
        assert_eq!(rounds(nanos(3000)), 8);
        assert_eq!(rounds(nanos(30_000)), 1);
        assert_eq!(rounds(nanos(3_000_000)), 1);
    }

    #[test]
    fn a_long_sweep_among_short_ones_is_noticed_soon() {
        let long = Duration::from_millis(5);
        let (_, oldest) = run(|n| if n < 500 { Duration::from_micros(1) } else { long });
        assert!(oldest <= long * 3, "{oldest:?}");
    }

    #[test]
    fn the_sweep_after_a_wait_needs_no_look() {
        let now = Instant::now();
        let mut clock = Clock::new(now);
        clock.waited(now);
        assert!(!clock.is_due());
        assert!(clock.is_due());
    }
}
