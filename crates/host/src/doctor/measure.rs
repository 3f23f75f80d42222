//! Short measurements, for rules that examine this machine.

use std::hint::black_box;
use std::time::{Duration, Instant};

/// The batches of calls; the fastest counts, because other processes run on the machine.
const BATCHES: u32 = 20;
const CALLS: u32 = 500;

/// Measures the nanoseconds of a minimal system call (getppid(2)).
#[must_use]
pub fn system_call_ns() -> f64 {
    per_call_ns(|| {
        black_box(rustix::process::getppid());
    })
}

/// Measures the nanoseconds of reading the clock.
#[must_use]
pub fn clock_read_ns() -> f64 {
    per_call_ns(|| {
        black_box(Instant::now());
    })
}

fn per_call_ns(mut call: impl FnMut()) -> f64 {
    let batch = |_| {
        let start = Instant::now();
        (0..CALLS).for_each(|_| call());
        start.elapsed()
    };
    let quickest = (0..BATCHES).map(batch).min().unwrap_or_default();
    quickest.as_nanos() as f64 / f64::from(CALLS)
}

/// Returns the share of steal, 0 to 1, between two readings of the first line of /proc/stat; `None`
/// when the readings are not valid.
#[must_use]
pub fn steal_share(earlier: &str, later: &str) -> Option<f64> {
    let ticks = |text: &str| -> Option<Vec<u64>> {
        let fields = text.lines().next()?.strip_prefix("cpu ")?;
        fields.split_whitespace().map(|field| field.parse().ok()).collect()
    };
    // Guest time, the field after steal, is in user time already (proc_stat(5)).
    let (earlier, later) = (ticks(earlier)?, ticks(later)?);
    let spent = |index: usize| Some(later.get(index)?.saturating_sub(*earlier.get(index)?));
    let all: u64 = (0..8).map(spent).sum::<Option<u64>>()?;
    (all > 0).then_some(spent(7)? as f64 / all as f64)
}

/// The time for which steal is observed.
pub const STEAL_WINDOW: Duration = Duration::from_millis(500);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steal_is_the_eighth_of_the_times() {
        let (earlier, later) = ("cpu  10 0 0 80 0 0 0 10 5 0\n", "cpu  30 0 0 140 0 0 0 30 9 0\n");
        assert_eq!(steal_share(earlier, later), Some(0.2));
        assert_eq!(steal_share(later, earlier), None, "nothing was counted");
        assert_eq!(steal_share("cpu 1 2", "cpu 3 4"), None);
        assert_eq!(steal_share("", ""), None);
    }

    #[test]
    fn calls_take_time() {
        assert!(system_call_ns() > 0.0 && clock_read_ns() > 0.0);
    }
}
