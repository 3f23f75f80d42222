//! The last things that happened, written by one thread without waiting and read by any.
//!
//! The readers never hold the writer up: it writes over the oldest entry. A reader that was too
//! slow notices, and leaves out what may be half of one entry and half of another.

use crate::sync::{AtomicU64, Ordering, fence};

/// The last `KEPT` entries, each of two numbers.
#[derive(Debug)]
pub struct Recent<const KEPT: usize> {
    entries: [[AtomicU64; 2]; KEPT],
    /// Entries begun, and entries that are whole.
    begun: AtomicU64,
    whole: AtomicU64,
}

impl<const KEPT: usize> Default for Recent<KEPT> {
    fn default() -> Self {
        Self::new()
    }
}

impl<const KEPT: usize> Recent<KEPT> {
    /// Without any entry.
    #[must_use]
    pub fn new() -> Self {
        let zero = || AtomicU64::new(0);
        let entries = std::array::from_fn(|_| [zero(), zero()]);
        Self { entries, begun: zero(), whole: zero() }
    }

    /// Adds an entry. Only one thread does; entries of two that did at once may be halves of both.
    pub fn push(&self, entry: [u64; 2]) {
        let count = self.begun.load(Ordering::Relaxed);
        self.begun.store(count + 1, Ordering::Relaxed);
        // Whoever sees a part of this entry sees that it was begun: with the fence in `since`.
        fence(Ordering::Release);
        for (place, value) in self.entries[count as usize % KEPT].iter().zip(entry) {
            place.store(value, Ordering::Relaxed);
        }
        // Release: whoever sees that it is whole sees all of it.
        self.whole.store(count + 1, Ordering::Release);
    }

    /// Entries from number `first` on (counting from 0), as far as they are still kept.
    #[must_use]
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
