//! A log of the last events, written by one thread without waiting and read by any.
//!
//! Readers never delay the writer: it writes over the oldest entry. A reader that was too slow
//! notices, and leaves out entries that may be torn.

use crate::sync::{AtomicU64, Ordering, fence};

/// The last `KEPT` entries, each of two numbers.
#[derive(Debug)]
pub struct Recent<const KEPT: usize> {
    entries: [[AtomicU64; 2]; KEPT],
    /// Entries begun, and entries that are complete.
    begun: AtomicU64,
    whole: AtomicU64,
}

impl<const KEPT: usize> Default for Recent<KEPT> {
    fn default() -> Self {
        Self::new()
    }
}

impl<const KEPT: usize> Recent<KEPT> {
    /// Makes a log without entries.
    #[must_use]
    pub fn new() -> Self {
        let zero = || AtomicU64::new(0);
        let entries = std::array::from_fn(|_| [zero(), zero()]);
        Self { entries, begun: zero(), whole: zero() }
    }

    /// Adds an entry. Only one thread may call it; concurrent entries of two threads may be torn.
    pub fn push(&self, entry: [u64; 2]) {
        let count = self.begun.load(Ordering::Relaxed);
        self.begun.store(count + 1, Ordering::Relaxed);
        // A reader that sees a part of this entry sees that it was begun: pairs with the fence in
        // `since`.
        fence(Ordering::Release);
        for (place, value) in self.entries[count as usize % KEPT].iter().zip(entry) {
            place.store(value, Ordering::Relaxed);
        }
        // Release: a reader that sees that it is complete sees all of it.
        self.whole.store(count + 1, Ordering::Release);
    }

    /// Returns the entries from number `first` on (counting from 0), as far as they are still
    /// there.
    #[must_use]
    pub fn since(&self, first: u64) -> Vec<[u64; 2]> {
        let whole = self.whole.load(Ordering::Acquire);
        let first = first.max(whole.saturating_sub(KEPT as u64));
        let entry = |n: u64| {
            self.entries[n as usize % KEPT].each_ref().map(|place| place.load(Ordering::Relaxed))
        };
        let entries: Vec<_> = (first..whole).map(entry).collect();
        // Entries written over meanwhile may be torn.
        fence(Ordering::Acquire);
        let over = self.begun.load(Ordering::Relaxed).saturating_sub(KEPT as u64);
        entries.into_iter().skip(over.saturating_sub(first) as usize).collect()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn the_last_entries_are_kept_in_order() {
        let recent = Recent::<64>::new();
        assert!(recent.since(0).is_empty());
        (0..100).for_each(|n| recent.push([n, 2 * n]));
        let entries = recent.since(0);
        assert_eq!((entries.len(), entries[0], entries[63]), (64, [36, 72], [99, 198]));
        assert_eq!(recent.since(98), [[98, 196], [99, 198]]);
        assert!(recent.since(200).is_empty());
    }

    #[test]
    fn a_reader_never_sees_half_an_entry() {
        let (entries, looks) = if cfg!(miri) { (100, 20) } else { (20_000, 500) };
        let recent = Recent::<64>::new();
        std::thread::scope(|scope| {
            scope.spawn(|| (1..entries).for_each(|n| recent.push([n, !n])));
            for _ in 0..looks {
                assert!(recent.since(0).iter().all(|[a, b]| *a == !*b));
            }
        });
    }
}
