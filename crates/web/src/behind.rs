//! How far the host is behind the radio: the delay of samples beyond that of the fastest ones.

use millstream_flow::TagTime;
use millstream_stats::SharedHistogram;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The fastest samples of two such periods are the reference: clocks drift apart.
const PERIOD: Duration = Duration::from_secs(10);

/// Delays in nanoseconds, a class for each factor of two.
pub(crate) type Delays = SharedHistogram<0>;

/// Compares the times of samples with this machine's clock.
#[derive(Debug)]
pub(crate) struct BehindMeter {
    rate_hz: Option<f64>,
    /// A known time: of the item with that number.
    anchor: Option<(u64, f64)>,
    began: Option<Instant>,
    /// The least difference of the clocks in this period and the one before, seconds.
    least: [f64; 2],
    period_began: Duration,
    histogram: Arc<Delays>,
}

impl BehindMeter {
    pub fn new(rate_hz: Option<f64>, histogram: Arc<Delays>) -> Self {
        let rate_hz = rate_hz.filter(|rate| *rate > 0.0);
        let least = [f64::INFINITY; 2];
        let period_began = Duration::ZERO;
        Self { rate_hz, anchor: None, began: None, least, period_began, histogram }
    }

    /// Whether [`note`](Self::note) has an effect.
    pub fn is_on(&self) -> bool {
        self.anchor.is_some() && self.rate_hz.is_some()
    }

    /// Takes the time of an item.
    pub fn anchor(&mut self, item: u64, time: TagTime) {
        self.anchor = Some((item, time.as_secs_f64()));
    }

    /// Samples were lost by this cause: some mean that the radio's clock was set.
    pub fn lost(&mut self, cause: &str) {
        if matches!(cause, "clock_jump" | "reopened") {
            self.least = [f64::INFINITY; 2];
        }
    }

    /// The radio's clock does not run as fast as this machine's: there is nothing to compare.
    pub fn turn_off(&mut self) {
        self.rate_hz = None;
    }

    /// The stream begins anew with this rate, behind a pause of any length.
    pub fn begin_anew(&mut self, rate_hz: Option<f64>) {
        if let (Some(present), Some(rate_hz)) = (&mut self.rate_hz, rate_hz) {
            *present = rate_hz;
        }
        self.least = [f64::INFINITY; 2];
    }

    /// All items before `end` are there at `now`.
    pub fn note(&mut self, end: u64, now: Instant) {
        let (Some((item, time_s)), Some(rate_hz)) = (self.anchor, self.rate_hz) else { return };
        let elapsed = now.duration_since(*self.began.get_or_insert(now));
        if elapsed.saturating_sub(self.period_began) > PERIOD {
            self.period_began = elapsed;
            self.least = [self.least[1], f64::INFINITY];
        }
        let ahead_s = (end as f64 - item as f64) / rate_hz;
        let difference_s = elapsed.as_secs_f64() - (time_s + ahead_s);
        self.least[1] = self.least[1].min(difference_s);
        let behind_s = difference_s - self.least[0].min(self.least[1]);
        self.histogram.record((behind_s * 1e9) as u64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_and_another_rate_are_no_delay_and_another_clock_is_not_compared() {
        let histogram = Arc::new(Delays::default());
        let mut meter = BehindMeter::new(Some(1000.0), Arc::clone(&histogram));
        let (begin, at) = (Instant::now(), Duration::from_millis);
        let time = |seconds| TagTime { seconds, fraction: 0 };
        meter.anchor(0, time(5));
        meter.note(100, begin + at(100));
        // Stopped for 2 s, and then a hundred samples in a fifth of a second.
        meter.begin_anew(Some(500.0));
        meter.anchor(100, time(700));
        meter.note(200, begin + at(2300));
        meter.note(300, begin + at(2500));
        assert!(histogram.max() < 1000, "{}", histogram.max());
        assert_eq!(histogram.count(), 3);
        meter.turn_off();
        assert!(!meter.is_on());
        meter.note(900, begin + at(9000));
        assert_eq!(histogram.count(), 3);
    }

    #[test]
    fn the_fastest_samples_are_the_reference_and_drift_is_forgotten() {
        let histogram = Arc::new(Delays::default());
        let mut meter = BehindMeter::new(Some(1000.0), Arc::clone(&histogram));
        let begin = Instant::now();
        assert!(!meter.is_on());
        meter.anchor(0, TagTime { seconds: 5, fraction: 0 });
        assert!(meter.is_on());
        let mut at = |ms: u64, items: u64| {
            meter.note(items, begin + Duration::from_millis(ms));
            histogram.max() as f64 / 1e9
        };
        // A hundred samples a tenth of a second, the third hundred 20 ms late.
        assert!(at(100, 100) < 1e-6 && at(200, 200) < 1e-6);
        assert!((at(320, 300) - 0.02).abs() < 1e-6);
        assert!((at(400, 400) - 0.02).abs() < 1e-6, "caught up");
        // Then all come 30 ms late: a delay at first, and the usual after two periods.
        for hundred in 5..400 {
            at(hundred * 100 + 30, hundred * 100);
        }
        assert!((histogram.max() as f64 / 1e9 - 0.03).abs() < 1e-6);
        let late = histogram.counts().filter(|(last_ns, _)| *last_ns > 20_000_000);
        let late: u64 = late.map(|(_, count)| count).sum();
        assert!((90..=210).contains(&late), "{late}");
    }
}
