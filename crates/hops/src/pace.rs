//! Readings that may be slow.

use millstream_cpu::usage::thread_cpu_time;
use std::time::{Duration, Instant};

/// The share of a CPU that one kind of dear reading may cost: 1 in so many.
const SHARE: u32 = 100;
/// The CPU time of a reading that is not dear.
const CHEAP: Duration = Duration::from_micros(100);

/// A reading that is kept until the next is due: after a least time, and, if it was dear, not
/// before its CPU time is at most a hundredth of the time since.
#[derive(Debug)]
pub(crate) struct Paced<T> {
    least: Duration,
    kept: Option<(T, Instant)>,
}

impl<T> Paced<T> {
    pub(crate) fn new(least: Duration) -> Self {
        Self { least, kept: None }
    }

    /// Returns the reading, a new one if it is due at `now`.
    pub(crate) fn read(&mut self, now: Instant, read: impl FnOnce() -> T) -> &T {
        let kept = self.kept.take().filter(|(_, due)| now < *due);
        let (value, _) = self.kept.insert(kept.unwrap_or_else(|| {
            let before = thread_cpu_time();
            let value = read();
            let cost = thread_cpu_time().saturating_sub(before);
            let dear = if cost > CHEAP { cost * SHARE } else { Duration::ZERO };
            (value, now + self.least.max(dear))
        }));
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dear_reading_waits_a_hundred_times_what_it_cost() {
        let mut paced = Paced::new(Duration::from_millis(1));
        let start = Instant::now();
        let burn = |value| {
            let before = thread_cpu_time();
            while thread_cpu_time() < before + Duration::from_millis(2) {
                std::hint::spin_loop();
            }
            value
        };
        assert_eq!(*paced.read(start, || burn(1)), 1);
        assert_eq!(*paced.read(start + Duration::from_millis(199), || 2), 1);
        assert_eq!(*paced.read(start + Duration::from_secs(60), || 3), 3);
        assert_eq!(*paced.read(start + Duration::from_secs(61), || 4), 4, "that one was cheap");
    }
}
