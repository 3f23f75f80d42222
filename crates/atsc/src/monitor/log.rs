//! The last things that happened, written without locks by one thread and read by any.

use std::sync::atomic::{AtomicU64, Ordering, fence};

/// Entries kept for readers that come late.
pub const KEPT: usize = 64;

/// A ring of the last entries, each of two numbers.
#[derive(Debug)]
pub struct Log {
    entries: [[AtomicU64; 2]; KEPT],
    /// Entries begun, and entries that are whole.
    begun: AtomicU64,
    whole: AtomicU64,
}

impl Log {
    /// Without any entry.
    pub const fn new() -> Self {
        Self {
            entries: [const { [const { AtomicU64::new(0) }; 2] }; KEPT],
            begun: AtomicU64::new(0),
            whole: AtomicU64::new(0),
        }
    }

    /// Adds an entry. Only one thread does.
    pub fn push(&self, entry: [u64; 2]) {
        let count = self.begun.load(Ordering::Relaxed);
        self.begun.store(count + 1, Ordering::Relaxed);
        fence(Ordering::Release);
        for (place, value) in self.entries[count as usize % KEPT].iter().zip(entry) {
            place.store(value, Ordering::Relaxed);
        }
        self.whole.store(count + 1, Ordering::Release);
    }

    /// Entries from number `first` on (counting from 0), as far as they are still kept.
    pub fn since(&self, first: u64) -> Vec<[u64; 2]> {
        let whole = self.whole.load(Ordering::Acquire);
        let first = first.max(whole.saturating_sub(KEPT as u64));
        let entry = |n: u64| {
            self.entries[n as usize % KEPT].each_ref().map(|place| place.load(Ordering::Relaxed))
        };
        let entries: Vec<_> = (first..whole).map(entry).collect();
        // What was written over meanwhile may be torn.
        fence(Ordering::Acquire);
        let over = self.begun.load(Ordering::Relaxed).saturating_sub(KEPT as u64);
        entries.into_iter().skip(over.saturating_sub(first) as usize).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_entries_are_kept_in_order() {
        let log = Log::new();
        assert!(log.since(0).is_empty());
        (0..100).for_each(|n| log.push([n, 2 * n]));
        let entries = log.since(0);
        assert_eq!((entries.len(), entries[0], entries[63]), (KEPT, [36, 72], [99, 198]));
        assert_eq!(log.since(98), [[98, 196], [99, 198]]);
        assert!(log.since(200).is_empty());
    }

    #[test]
    fn a_reader_never_sees_half_an_entry() {
        let log = Log::new();
        std::thread::scope(|scope| {
            scope.spawn(|| (1..20_000).for_each(|n| log.push([n, !n])));
            for _ in 0..500 {
                assert!(log.since(0).iter().all(|[a, b]| *a == !*b));
            }
        });
    }
}
