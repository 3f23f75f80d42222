//! A coarse distribution that can be read while it grows.

use std::sync::atomic::{AtomicU64, Ordering};

use millstream_measure::picture::short_time;

/// Classes: the first ends at [`FIRST_NS`], each further one at twice the time.
const CLASSES: usize = 32;
const FIRST_NS: u64 = 128;
/// Heights of a bar, from the lowest that is not nothing.
const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Counts of latencies, with a class for each factor of two. Threads record while others read; a
/// reader may miss the latest values.
#[derive(Debug, Default)]
pub struct LiveHistogram {
    classes: [AtomicU64; CLASSES],
    largest_ns: AtomicU64,
}

impl LiveHistogram {
    /// Counts a latency.
    pub fn record(&self, ns: u64) {
        self.classes[class_of(ns)].fetch_add(1, Ordering::Relaxed);
        self.largest_ns.fetch_max(ns, Ordering::Relaxed);
    }

    /// Describes the distribution in one line: a bar for each factor of two, from the first class
    /// with a value to the last. A bar is one step higher for ten times as many values, so that a
    /// single late one shows.
    #[must_use]
    pub fn words(&self) -> String {
        let counts: Vec<u64> =
            self.classes.iter().map(|class| class.load(Ordering::Relaxed)).collect();
        let Some(first) = counts.iter().position(|count| *count > 0) else {
            return "nothing yet".to_owned();
        };
        let last = counts.iter().rposition(|count| *count > 0).unwrap_or(first);
        let bars: String = counts[first..=last].iter().map(|count| bar(*count)).collect();
        format!(
            "{} {bars} {}, {} in all",
            short_time(if first == 0 { 0 } else { FIRST_NS << (first - 1) }),
            short_time(self.largest_ns.load(Ordering::Relaxed)),
            counts.iter().sum::<u64>()
        )
    }
}

fn class_of(ns: u64) -> usize {
    let doublings = ns.div_ceil(FIRST_NS).max(1).next_power_of_two().ilog2();
    (doublings as usize).min(CLASSES - 1)
}

fn bar(count: u64) -> char {
    match count.checked_ilog10() {
        None => ' ',
        Some(tens) => BARS[(tens as usize).min(BARS.len() - 1)],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_is_in_a_class_and_a_lone_late_one_shows() {
        let live = LiveHistogram::default();
        assert_eq!(live.words(), "nothing yet");
        (0..1000).for_each(|_| live.record(300));
        (0..20).for_each(|_| live.record(600));
        live.record(9_000);
        assert_eq!(live.words(), "256 ns ▄▂   ▁ 9.0 µs, 1021 in all");
        live.record(0);
        live.record(u64::MAX);
        assert!(live.words().starts_with("0 ns ▁"), "{}", live.words());
        assert!(live.words().ends_with("1023 in all"), "{}", live.words());
    }

    #[test]
    fn a_class_ends_at_a_power_of_two() {
        for (ns, class) in [(0, 0), (128, 0), (129, 1), (256, 1), (257, 2), (u64::MAX, 31)] {
            assert_eq!(class_of(ns), class, "{ns}");
        }
    }
}
