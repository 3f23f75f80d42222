//! What a process holds: memory, descriptors, threads.

use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Points that a series keeps: enough for its slope.
const POINTS_MAX: usize = 1024;

/// Points of a quarter from which on it says something: a round may leave a thread that ends a
/// little later.
const QUARTER_MIN: usize = 3;

/// What a process holds at one moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holdings {
    /// Memory in RAM (RSS), KiB.
    pub rss_kib: u64,
    /// Open descriptors.
    pub descriptors: u64,
    /// Threads.
    pub threads: u64,
}

impl Holdings {
    /// Reads those of a process; `None` when it has ended, or may not be looked at.
    #[must_use]
    pub fn of(pid: u32) -> Option<Self> {
        let folder = PathBuf::from(format!("/proc/{pid}"));
        let status = std::fs::read_to_string(folder.join("status")).ok()?;
        let number =
            |key| millstream_cpu::proc::value(&status, key)?.split(' ').next()?.parse().ok();
        let descriptors = std::fs::read_dir(folder.join("fd")).ok()?.count() as u64;
        // Reading the folder takes a descriptor of this process.
        let own = u64::from(pid == std::process::id());
        Some(Self {
            rss_kib: number("VmRSS")?,
            descriptors: descriptors - own,
            threads: number("Threads")?,
        })
    }
}

/// A quantity after each round. Of a long run it keeps every second round, then every fourth, and
/// so on, so that its size has a bound.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Series {
    /// Rounds from one point to the next.
    pub every: u64,
    /// The points, the first one after the first round.
    pub points: Vec<u64>,
    /// Rounds since the last point.
    since: u64,
    /// The newest value, whether it is a point or not.
    pub newest: u64,
}

impl Default for Series {
    fn default() -> Self {
        Self { every: 1, points: Vec::new(), since: 0, newest: 0 }
    }
}

impl Series {
    /// Adds the value after a round.
    pub fn push(&mut self, value: u64) {
        self.newest = value;
        if !self.points.is_empty() {
            self.since += 1;
            if self.since < self.every {
                return;
            }
        }
        self.since = 0;
        self.points.push(value);
        if self.points.len() > POINTS_MAX {
            let mut index = 0;
            self.points.retain(|_| {
                index += 1;
                index % 2 == 1
            });
            self.every *= 2;
        }
    }

    /// The value after the first round.
    #[must_use]
    pub fn first(&self) -> Option<u64> {
        self.points.first().copied()
    }

    /// Whether a count that should stay the same rose for good: the least of the last quarter is
    /// above the greatest of the first one. False where the rounds are too few.
    #[must_use]
    pub fn has_risen(&self) -> bool {
        let quarter = self.points.len() / 4;
        if quarter < QUARTER_MIN {
            return false;
        }
        let first = self.points.iter().take(quarter).max();
        let last = self.points.iter().rev().take(quarter).min();
        last > first
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(values: impl IntoIterator<Item = u64>) -> Series {
        let mut series = Series::default();
        values.into_iter().for_each(|value| series.push(value));
        series
    }

    #[test]
    fn a_process_shows_what_it_takes_and_gives_back() {
        let own = || Holdings::of(std::process::id()).unwrap();
        let before = own();
        assert!(before.rss_kib > 100 && before.threads > 0, "{before:?}");
        // Other tests open files and start threads at the same time, but not a thousand.
        let files: Vec<_> =
            (0..500).map(|_| std::fs::File::open("/proc/self/status").unwrap()).collect();
        let memory = vec![1u8; 64 << 20];
        let during = own();
        assert!(during.descriptors >= before.descriptors + 400, "{before:?} {during:?}");
        assert!(during.rss_kib >= before.rss_kib + (32 << 10), "{before:?} {during:?}");
        drop((files, std::hint::black_box(memory)));
        assert!(own().descriptors < before.descriptors + 400);
        assert_eq!(Holdings::of(u32::MAX), None);
    }

    #[test]
    fn a_long_series_keeps_its_ends_and_its_spacing() {
        let long = series(0..10_000);
        assert_eq!((long.every, long.first(), long.newest), (16, Some(0), 9999));
        assert!(long.points.len() <= POINTS_MAX);
        let even = long.points.windows(2).all(|pair| pair[1] - pair[0] == long.every);
        assert!(even, "{:?}", long.points);
        let text = serde_json::to_string(&long).unwrap();
        assert_eq!(serde_json::from_str::<Series>(&text).unwrap(), long);
    }

    #[test]
    fn a_count_rises_for_good_or_not_at_all() {
        assert!(!series([7; 40]).has_risen());
        assert!(!series([7, 8, 7, 9, 7, 8, 7, 7]).has_risen(), "it comes back");
        assert!(!series([7, 7, 7, 8]).has_risen(), "too short");
        let late = |rounds: u64| series((0..rounds).map(|n| 7 + u64::from(n + 3 >= rounds)));
        assert!(!late(11).has_risen() && late(12).has_risen());
        assert!(series((0..40).map(|n| 7 + n / 10)).has_risen());
        // A thread that ends a little later than its round.
        assert!(!series((0..40).map(|n| 7 + n % 2)).has_risen());
    }
}
