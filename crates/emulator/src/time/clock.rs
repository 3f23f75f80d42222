//! The sample clock: the time of each sample.

/// Beyond this many nanoseconds (104 days) an f64 is coarser than one; no real wait is that long.
const EXACT_NS_MAX: f64 = (1u64 << 53) as f64;

/// Maps the machine's monotonic clock to sample ticks and back.
///
/// The schedule is absolute: every answer is computed from the origin, so pacing errors never
/// accumulate. Time is always an argument, in nanoseconds of `CLOCK_MONOTONIC`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SampleClock {
    origin_ns: u64,
    origin_tick: u64,
    rate_hz: f64,
    time_scale: f64,
}

impl SampleClock {
    /// Returns a clock with tick `tick` at `now_ns` that runs at `rate_hz * time_scale` ticks per
    /// second.
    ///
    /// # Panics
    /// When the rate or the scale is not positive and finite: callers check their input.
    pub fn new(now_ns: u64, tick: u64, rate_hz: f64, time_scale: f64) -> Self {
        let speed_hz = rate_hz * time_scale;
        assert!(speed_hz.is_finite() && speed_hz > 0.0, "clock speed {speed_hz} Hz");
        Self { origin_ns: now_ns, origin_tick: tick, rate_hz, time_scale }
    }

    /// Returns the ticks per second of device time.
    pub fn rate_hz(&self) -> f64 {
        self.rate_hz
    }

    /// Seconds of device time per second of wall time.
    pub fn time_scale(&self) -> f64 {
        self.time_scale
    }

    /// Returns the ticks that have passed completely at `now_ns`.
    pub fn tick_at(&self, now_ns: u64) -> u64 {
        if now_ns >= self.origin_ns {
            self.origin_tick.saturating_add(self.ticks_in(now_ns - self.origin_ns).floor() as u64)
        } else {
            self.origin_tick.saturating_sub(self.ticks_in(self.origin_ns - now_ns).ceil() as u64)
        }
    }

    /// Returns the first nanosecond at which `tick` ticks have passed.
    pub fn deadline_ns(&self, tick: u64) -> u64 {
        let Some(ahead) = tick.checked_sub(self.origin_tick) else { return self.origin_ns };
        let wait_ns = ahead as f64 * 1e9 / (self.rate_hz * self.time_scale);
        if wait_ns > EXACT_NS_MAX {
            return self.origin_ns.saturating_add(wait_ns as u64);
        }
        // Rounding may be off by one in either direction; the definition above decides.
        let mut deadline = self.origin_ns.saturating_add(wait_ns.ceil() as u64);
        while deadline > self.origin_ns && self.tick_at(deadline - 1) >= tick {
            deadline -= 1;
        }
        while deadline < u64::MAX && self.tick_at(deadline) < tick {
            deadline += 1;
        }
        deadline
    }

    /// Returns a clock with the same tick count from `now_ns` on at another rate.
    pub fn retuned(&self, now_ns: u64, rate_hz: f64) -> Self {
        Self::new(now_ns, self.tick_at(now_ns), rate_hz, self.time_scale)
    }

    fn ticks_in(&self, span_ns: u64) -> f64 {
        span_ns as f64 * (self.rate_hz * self.time_scale) / 1e9
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_schedule_does_not_drift_over_days() {
        for (rate_hz, scale) in [(6.25e6, 1.0), (4.5e6 * 684.0 / 286.0, 1.0), (100e6, 0.25)] {
            let clock = SampleClock::new(5_000, 0, rate_hz, scale);
            for seconds in [1u64, 3_600, 86_400 * 10] {
                let due = clock.tick_at(5_000 + seconds * 1_000_000_000);
                let exact = seconds as f64 * rate_hz * scale;
                assert!((due as f64 - exact).abs() <= 1.0, "{rate_hz} {seconds}: {due}");
            }
        }
    }

    #[test]
    fn a_deadline_is_the_first_instant_of_its_tick() {
        for rate_hz in [1e4, 33_333.3, 6.25e6, 61.44e6, 500e6] {
            let clock = SampleClock::new(1_234_567_891_011, 77, rate_hz, 1.0);
            for tick in (77..200).chain([10_000_000, 123_456_789, 9_876_543_210]) {
                let deadline = clock.deadline_ns(tick);
                assert!(clock.tick_at(deadline) >= tick);
                assert!(deadline == 1_234_567_891_011 || clock.tick_at(deadline - 1) < tick);
            }
        }
    }

    #[test]
    fn ticks_beyond_all_time_have_a_deadline_too() {
        for rate_hz in [1e3, 16e6, 500e6] {
            let clock = SampleClock::new(1 << 60, 5, rate_hz, 1.0);
            for tick in [1 << 62, 1 << 63, u64::MAX] {
                assert!(clock.deadline_ns(tick) > 1 << 60);
            }
        }
    }

    #[test]
    fn time_scale_slows_device_time_down() {
        let clock = SampleClock::new(0, 0, 1e6, 0.5);
        assert_eq!(clock.tick_at(1_000_000_000), 500_000);
        assert_eq!(clock.deadline_ns(500_000), 1_000_000_000);
    }

    #[test]
    fn a_new_rate_keeps_the_count() {
        let clock = SampleClock::new(0, 0, 1e6, 1.0).retuned(1_000_000_000, 2e6);
        assert_eq!(clock.tick_at(1_000_000_000), 1_000_000);
        assert_eq!(clock.tick_at(2_000_000_000), 3_000_000);
        assert_eq!(clock.tick_at(500_000_000), 0, "ticks before the origin extrapolate");
    }
}
