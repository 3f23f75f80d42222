//! The lag of a consumer behind a radio's clock.

use millstream_stats::Histogram;
use std::time::{Duration, Instant};

/// The samples of this time define zero.
const WARM_UP: Duration = Duration::from_millis(100);

/// Compares the times of consumed samples with this machine's clock.
///
/// The offset between the two clocks is unknown, so zero is the shortest lag seen. A lag times the
/// rate is the number of waiting samples, which a buffer has to hold.
#[derive(Debug, Clone)]
pub struct Lag {
    rate_hz: f64,
    origin: Option<(Instant, u64)>,
    shortest_ns: f64,
    histogram: Histogram,
}

impl Lag {
    /// Creates the lag of a radio that counts `rate_hz` ticks per second of this machine's clock.
    pub fn new(rate_hz: f64) -> Self {
        Self { rate_hz, origin: None, shortest_ns: f64::MAX, histogram: Histogram::default() }
    }

    /// Notes that samples up to `tick` have been consumed `now`.
    pub fn note(&mut self, now: Instant, tick: u64) {
        let (first, first_tick) = *self.origin.get_or_insert((now, tick));
        let ticks = tick.wrapping_sub(first_tick) as i64;
        let passed = now - first;
        let lag_ns = passed.as_nanos() as f64 - ticks as f64 * 1e9 / self.rate_hz;
        self.shortest_ns = self.shortest_ns.min(lag_ns);
        if passed >= WARM_UP {
            self.histogram.record((lag_ns - self.shortest_ns) as u64);
        }
    }

    /// The lags after the first 100 ms, which define zero.
    pub fn histogram(&self) -> &Histogram {
        &self.histogram
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lag_is_measured_from_the_shortest() {
        let mut lag = Lag::new(1e6);
        let start = Instant::now();
        let mut note = |at_us: u64, tick| lag.note(start + Duration::from_micros(at_us), tick);
        note(0, 77);
        // 5 µs earlier than the first, in the warm-up.
        note(1_000, 1_077 + 5);
        note(200_000, 200_077);
        note(300_095, 300_077 + 100);
        let histogram = lag.histogram();
        assert_eq!((histogram.count(), histogram.min_ns(), histogram.max_ns()), (2, 0, 5_000));
    }
}
