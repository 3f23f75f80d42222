//! The packets due at an offered rate, and the wait of a side.

use super::end::Look;
use super::plan::{ADAPTIVE_SPIN, PacketWait};

/// Packets due at a constant rate, by the clock and independent of those sent before.
#[derive(Debug, Clone, Copy)]
pub struct Pace {
    rate_hz: f64,
}

impl Pace {
    /// Creates a pace of `rate_hz` packets a second.
    #[must_use]
    pub fn new(rate_hz: f64) -> Self {
        Self { rate_hz }
    }

    /// Packets due `elapsed_ns` after the beginning.
    #[must_use]
    pub fn due(&self, elapsed_ns: u64) -> u64 {
        (elapsed_ns as f64 * self.rate_hz / 1e9) as u64 + 1
    }

    /// When packet `number` (from 0) is due, nanoseconds after the beginning.
    #[must_use]
    pub fn time_of(&self, number: u64) -> u64 {
        (number as f64 * 1e9 / self.rate_hz).ceil() as u64
    }
}

/// Chooses the next poll.
#[derive(Debug, Clone, Copy)]
pub struct PollPolicy {
    wait: PacketWait,
    empty_since_ns: Option<u64>,
}

impl PollPolicy {
    /// Creates the policy of `wait`.
    #[must_use]
    pub fn new(wait: PacketWait) -> Self {
        Self { wait, empty_since_ns: None }
    }

    /// Returns the next poll, given whether the last one brought packets.
    pub fn next(&mut self, now_ns: u64, news: bool) -> Look {
        match self.wait {
            PacketWait::Block => Look::Sleep,
            PacketWait::Spin => Look::Glance,
            PacketWait::Adaptive if news => {
                self.empty_since_ns = None;
                Look::Glance
            }
            PacketWait::Adaptive => {
                let since_ns = *self.empty_since_ns.get_or_insert(now_ns);
                let over = now_ns - since_ns >= ADAPTIVE_SPIN.as_nanos() as u64;
                if over { Look::Sleep } else { Look::Glance }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pace_makes_up_for_what_was_late() {
        let pace = Pace::new(1e6);
        assert_eq!((pace.due(0), pace.due(999), pace.due(1000), pace.due(5_500)), (1, 1, 2, 6));
        for number in [0, 1, 7, 1_000_003] {
            let at = pace.time_of(number);
            assert!(pace.due(at) > number && (at == 0 || pace.due(at - 2) <= number), "{number}");
        }
    }

    #[test]
    fn an_adaptive_wait_sleeps_after_its_spin_and_wakes_for_news() {
        let mut governor = PollPolicy::new(PacketWait::Adaptive);
        let spin_ns = ADAPTIVE_SPIN.as_nanos() as u64;
        let looks = [(0, true), (10, false), (9 + spin_ns, false), (10 + spin_ns, false)];
        let looks = looks.map(|(at, news)| governor.next(at, news));
        assert_eq!(looks, [Look::Glance, Look::Glance, Look::Glance, Look::Sleep]);
        assert_eq!(governor.next(spin_ns * 2, true), Look::Glance);
        assert_eq!(governor.next(spin_ns * 2 + 1, false), Look::Glance, "it spins anew");
        assert_eq!(PollPolicy::new(PacketWait::Spin).next(1 << 40, false), Look::Glance);
        assert_eq!(PollPolicy::new(PacketWait::Block).next(0, true), Look::Sleep);
    }
}
