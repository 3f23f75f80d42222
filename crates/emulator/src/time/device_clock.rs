//! The timekeeper: the timestamp of the host, which it may set now or at the next PPS edge.

use super::SampleClock;

/// A sample clock plus the offset between its ticks and the host's timestamps.
///
/// Ticks of the sample clock never jump; timestamps do when the host sets the time. PPS edges are
/// at whole seconds of (scaled) `CLOCK_MONOTONIC`, so all emulated radios of a machine share them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DeviceClock {
    clock: SampleClock,
    /// Timestamp minus tick, modulo 2^64, before and from tick `edge` on.
    offset_before: u64,
    offset: u64,
    edge: u64,
}

impl DeviceClock {
    /// Returns a timekeeper whose timestamps equal the clock's ticks.
    pub fn new(clock: SampleClock) -> Self {
        Self { clock, offset_before: 0, offset: 0, edge: 0 }
    }

    /// Returns the underlying clock.
    pub fn clock(&self) -> &SampleClock {
        &self.clock
    }

    /// Returns the timestamp of sample `tick`.
    pub fn timestamp_of(&self, tick: u64) -> u64 {
        tick.wrapping_add(if tick >= self.edge { self.offset } else { self.offset_before })
    }

    /// Returns the first tick from `from` on with `timestamp`; `None` when that has passed.
    pub fn tick_of(&self, timestamp: u64, from: u64) -> Option<u64> {
        // Differences modulo 2^64 are times ahead only below half of that.
        let ahead = |start: u64, offset: u64| {
            let wait = timestamp.wrapping_sub(start.wrapping_add(offset));
            (wait < 1 << 63).then(|| start.saturating_add(wait))
        };
        let before = if from < self.edge { ahead(from, self.offset_before) } else { None };
        before.filter(|&tick| tick < self.edge).or_else(|| ahead(from.max(self.edge), self.offset))
    }

    /// Returns the timestamp at `now_ns`.
    pub fn now(&self, now_ns: u64) -> u64 {
        self.timestamp_of(self.clock.tick_at(now_ns))
    }

    /// Returns the timestamp at the latest PPS edge.
    pub fn last_pps(&self, now_ns: u64) -> u64 {
        let second_ns = self.second_ns();
        let edge_ns = (now_ns as f64 / second_ns).floor() * second_ns;
        self.timestamp_of(self.clock.tick_at(edge_ns as u64))
    }

    /// Sets the timestamp at `now_ns`.
    pub fn set_now(&mut self, now_ns: u64, timestamp: u64) {
        self.set_at_tick(self.clock.tick_at(now_ns), self.clock.tick_at(now_ns), timestamp);
    }

    /// Sets the timestamp at the first PPS edge after `now_ns`.
    pub fn set_at_next_pps(&mut self, now_ns: u64, timestamp: u64) {
        let second_ns = self.second_ns();
        let edge_ns = ((now_ns as f64 / second_ns).floor() + 1.0) * second_ns;
        let edge = self.clock.tick_at(edge_ns as u64);
        self.set_at_tick(self.clock.tick_at(now_ns), edge, timestamp);
    }

    /// Changes the clock's rate from `now_ns` on; the timestamp stays continuous. A time that waits
    /// for a PPS edge still begins at that edge.
    pub fn set_rate(&mut self, now_ns: u64, rate_hz: f64) {
        let (before, timestamp) = (self.clock, self.edge.wrapping_add(self.offset));
        self.clock = before.retuned(now_ns, rate_hz);
        if self.edge > before.tick_at(now_ns) {
            self.edge = self.clock.tick_at(before.deadline_ns(self.edge));
            self.offset = timestamp.wrapping_sub(self.edge);
        }
    }

    fn set_at_tick(&mut self, now_tick: u64, edge: u64, timestamp: u64) {
        self.offset_before = self.timestamp_of(now_tick).wrapping_sub(now_tick);
        self.edge = edge;
        self.offset = timestamp.wrapping_sub(edge);
    }

    fn second_ns(&self) -> f64 {
        1e9 / self.clock.time_scale()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn keeper() -> DeviceClock {
        DeviceClock::new(SampleClock::new(SECOND / 2, 0, 1e6, 1.0))
    }

    #[test]
    fn setting_the_time_now_acts_at_once() {
        let mut keeper = keeper();
        keeper.set_now(3 * SECOND, 42);
        assert_eq!(keeper.now(3 * SECOND), 42);
        assert_eq!(keeper.now(4 * SECOND), 42 + 1_000_000);
    }

    #[test]
    fn setting_the_time_at_pps_waits_for_the_edge() {
        let mut keeper = keeper();
        keeper.set_at_next_pps(3 * SECOND + SECOND / 4, 7_000_000);
        assert_eq!(keeper.now(4 * SECOND - 1_000), 3_500_000 - 1);
        assert_eq!(keeper.now(4 * SECOND), 7_000_000);
        assert_eq!(keeper.last_pps(4 * SECOND + SECOND / 3), 7_000_000);
        assert_eq!(keeper.last_pps(5 * SECOND + 1), 8_000_000);
    }

    #[test]
    fn last_pps_changes_once_a_second() {
        let keeper = keeper();
        let mut seen =
            (0..50).map(|i| keeper.last_pps(SECOND + i * SECOND / 10)).collect::<Vec<_>>();
        seen.dedup();
        assert_eq!(seen.len(), 5);
        assert!(seen.windows(2).all(|pair| pair[1] - pair[0] == 1_000_000));
    }

    #[test]
    fn a_timestamp_in_the_past_is_none() {
        let mut keeper = keeper();
        keeper.set_now(SECOND, 1_000);
        let tick = keeper.clock().tick_at(SECOND);
        assert_eq!(keeper.tick_of(1_500, tick), Some(tick + 500));
        assert_eq!(keeper.tick_of(1_000, tick), Some(tick));
        assert_eq!(keeper.tick_of(999, tick), None);
    }

    #[test]
    fn a_timestamp_behind_a_coming_edge_is_found_in_the_new_time() {
        let mut keeper = keeper();
        keeper.set_at_next_pps(3 * SECOND + SECOND / 2, 100);
        // Tick 3 000 000 now, edge at 3 500 000; until then timestamps equal ticks.
        assert_eq!(keeper.tick_of(3_400_000, 3_000_000), Some(3_400_000));
        assert_eq!(keeper.tick_of(150, 3_000_000), Some(3_500_050));
        assert_eq!(keeper.tick_of(50, 3_000_000), None);
    }

    #[test]
    fn a_rate_change_before_the_edge_leaves_it_where_it_is() {
        let mut keeper = keeper();
        keeper.set_at_next_pps(3 * SECOND + SECOND / 4, 7_000_000);
        keeper.set_rate(3 * SECOND + SECOND / 2, 4e6);
        assert_eq!(keeper.now(4 * SECOND - 1_000), 3_000_000 + 2_000_000 - 4);
        assert_eq!(keeper.now(4 * SECOND), 7_000_000);
        assert_eq!(keeper.now(5 * SECOND), 11_000_000);
    }

    #[test]
    fn a_rate_change_keeps_the_timestamp_continuous() {
        let mut keeper = keeper();
        keeper.set_now(SECOND, 0);
        keeper.set_rate(2 * SECOND, 5e6);
        assert_eq!(keeper.now(2 * SECOND), 1_000_000);
        assert_eq!(keeper.now(3 * SECOND), 6_000_000);
    }
}
