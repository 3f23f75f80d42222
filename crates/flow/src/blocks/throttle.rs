//! Lets items pass at a rate.

use crate::registry::BlockParameters;
use crate::value::ParameterValue;
use crate::{
    Block, BlockError, BlockFacts, BlockMemory, Context, In, Item, Out, ParameterKind, Ports, Work,
    copied_ns,
};
use std::time::{Duration, Instant};

/// The time step in which items are let through, unless another is set.
const STEP: Duration = Duration::from_millis(1);

/// A pause that is not caught up.
const PAUSE: Duration = Duration::from_secs(1);

/// Lets items pass at `rate_hz` items per second on average, in steps of a millisecond, or of
/// another [time](Self::with_step). What came too late is caught up, but not a pause of more than a
/// second without enough items. When the graph is asked to stop it lets the rest pass at once.
///
/// Ports: `in`, `out`. Messages: `rate_hz`; `stop` holds all items back, until `start`.
#[derive(Debug, Ports)]
pub struct Throttle<T: Item> {
    /// Items.
    pub input: In<T>,
    /// The same items, in time.
    pub output: Out<T>,
    rate_hz: f64,
    step: Duration,
    start: Option<Instant>,
    passed: u64,
    /// When all that were due passed last.
    last: Option<Instant>,
    stopped: bool,
}

impl<T: Item> Throttle<T> {
    /// Lets `rate_hz` items per second pass.
    ///
    /// # Errors
    /// A rate that is not positive and finite.
    pub fn new(rate_hz: f64) -> Result<Self, BlockError> {
        let rate_hz = check(rate_hz)?;
        let (input, output) = (In::new(), Out::new());
        let (start, last) = (None, None);
        Ok(Self { input, output, rate_hz, step: STEP, start, passed: 0, last, stopped: false })
    }

    /// Lets items pass in steps of this time: a shorter one costs more calls, and a longer one lets
    /// more items pass at once.
    #[must_use]
    pub const fn with_step(mut self, step: Duration) -> Self {
        self.step = step;
        self
    }

    /// Goes on at another rate, counted from the next call.
    fn set_rate(&mut self, rate_hz: f64) -> Result<(), BlockError> {
        self.rate_hz = check(rate_hz)?;
        self.restart();
        Ok(())
    }

    /// Counts from the next call.
    fn restart(&mut self) {
        (self.start, self.last, self.passed) = (None, None, 0);
    }

    /// Items that may pass by now.
    fn due(&mut self, context: &Context) -> usize {
        if context.stopping {
            return usize::MAX;
        }
        if self.stopped {
            return 0;
        }
        let mut start = *self.start.get_or_insert(context.now);
        let pause = context.now.saturating_duration_since(self.last.unwrap_or(start));
        if pause > self.step().saturating_add(PAUSE) {
            start = context.now.checked_sub(self.step()).unwrap_or(context.now);
            (self.start, self.passed) = (Some(start), 0);
        }
        let elapsed = context.now.saturating_duration_since(start);
        // Saturating conversions: a float beyond the range gives the largest number.
        let due = (elapsed.as_secs_f64() * self.rate_hz) as u64;
        due.saturating_sub(self.passed) as usize
    }
}

fn check(rate_hz: f64) -> Result<f64, BlockError> {
    if rate_hz.is_finite() && rate_hz > 0.0 {
        Ok(rate_hz)
    } else {
        Err(format!("the rate is {rate_hz} Hz: give more than zero").into())
    }
}

impl<T: Item> Block for Throttle<T> {
    fn work(&mut self, context: &mut Context) -> Result<Work, BlockError> {
        // Each call would let an item or two pass, wake the reader with them, and be woken by it.
        let next = self.last.map_or(context.now, |last| last + self.step);
        let early = next.saturating_duration_since(context.now);
        let due = if early.is_zero() || context.stopping { self.due(context) } else { 0 };
        let (input, output) = (self.input.slice(), self.output.slice_mut());
        let items = input.len().min(output.len()).min(due);
        output[..items].copy_from_slice(&input[..items]);
        let waiting = input.len() > items && items == due;
        self.input.consume(items);
        self.output.produce(items);
        self.passed += items as u64;
        // Otherwise a ring is too small for a step: the rest passes as soon as it has room.
        if items > 0 && items == due {
            self.last = Some(context.now);
        }
        let wait = if early.is_zero() { self.step() } else { early };
        Ok(if waiting { Work::Again(wait) } else { Work::Continue })
    }

    fn facts(&self, facts: &mut BlockFacts) {
        facts
            .ns_per_item(copied_ns::<T>())
            .memory(BlockMemory::none())
            .message("rate_hz", ParameterKind::Number, "items per second from now on")
            .message("stop", ParameterKind::Boolean, "hold all items back")
            .message("start", ParameterKind::Boolean, "let items pass again after a stop");
    }

    fn message(&mut self, name: &str, value: &ParameterValue) -> Result<(), BlockError> {
        if name == "rate_hz" {
            return self.set_rate(value.as_number().unwrap_or(f64::NAN));
        }
        // The time of a pause is not caught up.
        self.stopped = (name == "stop") == (*value == ParameterValue::Boolean(true));
        self.restart();
        Ok(())
    }
}

impl<T: Item> Throttle<T> {
    /// Returns the step, or the time of one item at a slow rate.
    fn step(&self) -> Duration {
        self.step.max(Duration::try_from_secs_f64(1.0 / self.rate_hz).unwrap_or(Duration::MAX))
    }
}

/// Limits the rate at which items pass.
#[derive(BlockParameters)]
#[block(throttle, paced, items(cf32, f32, sc16, u8), example = "rate_hz = 1e6")]
struct ThrottleParameters {
    /// items per second
    #[parameter(above = 0)]
    rate_hz: f64,
    /// milliseconds from one group of items to the next
    #[parameter(default = 1.0, least = 0.01, most = 10_000)]
    step_ms: f64,
}

impl ThrottleParameters {
    fn make<T: Item>(self) -> Result<Throttle<T>, BlockError> {
        let step = Duration::from_secs_f64(self.step_ms / 1e3);
        Ok(Throttle::new(self.rate_hz)?.with_step(step))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Mock;

    fn call(mock: &mut Mock<Throttle<u8>>, now: Instant, stopping: bool) -> (Work, usize) {
        let mut context = Context::at(now);
        context.stopping = stopping;
        let work = mock.block.work(&mut context).unwrap();
        (work, mock.take::<u8>("out").len())
    }

    #[test]
    fn lets_pass_what_is_due() {
        let mut mock = Mock::new(Throttle::new(1000.0).unwrap());
        mock.feed("in", &[7u8; 300]);
        let start = Instant::now();
        let after = |ms| start + Duration::from_millis(ms);
        assert_eq!(call(&mut mock, start, false), (Work::Again(STEP), 0));
        assert_eq!(call(&mut mock, after(100), false), (Work::Again(STEP), 100));
        assert_eq!(call(&mut mock, after(100), false), (Work::Again(STEP), 0));
        assert_eq!(call(&mut mock, after(150), false), (Work::Again(STEP), 50));
        assert_eq!(call(&mut mock, after(150), true), (Work::Continue, 150));
    }

    #[test]
    fn within_a_step_nothing_passes_again() {
        let mut mock = Mock::new(Throttle::new(1e6).unwrap());
        mock.feed("in", &[7u8; 3000]);
        let start = Instant::now();
        let after = |us| start + Duration::from_micros(us);
        assert_eq!(call(&mut mock, start, false).1, 0);
        assert_eq!(call(&mut mock, after(1000), false), (Work::Again(STEP), 1000));
        let rest = Duration::from_micros(400);
        assert_eq!(call(&mut mock, after(1600), false), (Work::Again(rest), 0));
        assert_eq!(call(&mut mock, after(2000), false), (Work::Again(STEP), 1000));
    }

    #[test]
    fn a_short_step_lets_fewer_items_pass_at_once() {
        let step = Duration::from_micros(100);
        let mut mock = Mock::new(Throttle::new(1e6).unwrap().with_step(step));
        mock.feed("in", &[7u8; 3000]);
        let start = Instant::now();
        let after = |us| start + Duration::from_micros(us);
        assert_eq!(call(&mut mock, start, false), (Work::Again(step), 0));
        assert_eq!(call(&mut mock, after(100), false), (Work::Again(step), 100));
        assert_eq!(call(&mut mock, after(160), false), (Work::Again(Duration::from_micros(40)), 0));
        assert_eq!(call(&mut mock, after(200), false), (Work::Again(step), 100));
    }

    #[test]
    fn a_ring_that_is_smaller_than_a_step_does_not_limit_the_rate() {
        let mut mock = Mock::new(Throttle::new(1e6).unwrap());
        let start = Instant::now();
        let after = |us| start + Duration::from_micros(us);
        assert_eq!(call(&mut mock, start, false).1, 0);
        for call_after in [1000, 1010, 1020] {
            mock.feed("in", &[7u8; 300]);
            assert_eq!(call(&mut mock, after(call_after), false), (Work::Continue, 300));
        }
        mock.feed("in", &[7u8; 300]);
        assert_eq!(call(&mut mock, after(1030), false), (Work::Again(STEP), 130));
    }

    #[test]
    fn a_long_pause_is_not_caught_up() {
        let mut mock = Mock::new(Throttle::new(1000.0).unwrap());
        let start = Instant::now();
        let after = |ms| start + Duration::from_millis(ms);
        mock.feed("in", &[7u8; 50]);
        assert_eq!(call(&mut mock, start, false).1, 0);
        assert_eq!(call(&mut mock, after(50), false).1, 50);
        mock.feed("in", &[7u8; 300]);
        assert_eq!(call(&mut mock, after(5000), false).1, 1);
        assert_eq!(call(&mut mock, after(5020), false).1, 20);
        assert_eq!(call(&mut mock, after(5900), false).1, 279, "a second is caught up");
    }

    #[test]
    fn a_new_rate_counts_from_its_first_call() {
        let mut mock = Mock::new(Throttle::new(1.0).unwrap());
        mock.feed("in", &[7u8; 300]);
        let start = Instant::now();
        assert_eq!(call(&mut mock, start, false).1, 0);
        mock.send("rate_hz", 1000.0).unwrap();
        let later = start + Duration::from_secs(10);
        assert_eq!(call(&mut mock, later, false).1, 0);
        assert_eq!(call(&mut mock, later + Duration::from_millis(50), false).1, 50);
        let error = mock.send("rate_hz", -1.0).unwrap_err().to_string();
        assert_eq!(error, "the rate is -1 Hz: give more than zero");
    }

    #[test]
    fn a_stop_holds_items_back_and_its_time_is_not_caught_up() {
        let mut mock = Mock::new(Throttle::new(1000.0).unwrap());
        mock.feed("in", &[7u8; 300]);
        let start = Instant::now();
        let after = |ms| start + Duration::from_millis(ms);
        assert_eq!(call(&mut mock, start, false).1, 0);
        assert_eq!(call(&mut mock, after(50), false).1, 50);
        mock.send("stop", true).unwrap();
        assert_eq!(call(&mut mock, after(5000), false), (Work::Again(STEP), 0));
        mock.send("start", true).unwrap();
        assert_eq!(call(&mut mock, after(6000), false).1, 0);
        assert_eq!(call(&mut mock, after(6020), false).1, 20);
        mock.send("stop", true).unwrap();
        assert_eq!(call(&mut mock, after(7000), true), (Work::Continue, 230), "the graph ends");
    }

    #[test]
    fn refuses_rates_that_never_pass_anything() {
        for rate_hz in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            let error = Throttle::<u8>::new(rate_hz).unwrap_err().to_string();
            assert_eq!(error, format!("the rate is {rate_hz} Hz: give more than zero"));
        }
    }
}
