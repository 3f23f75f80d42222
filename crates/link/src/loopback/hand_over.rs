//! Slots handed from one thread to another, in order, without a lock.
//!
//! Slots go round in a circle of two hand-overs: filled ones to the receiver, empty ones back to
//! the sender. Each holds as many entries as there are slots, so neither is ever full, and an
//! entry is only written over by a slot that came round after it was read.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use millstream_ring::Padded;

/// What one entry says: a slot of the receiver's memory, and what lies in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Entry {
    pub slot: u32,
    pub bytes: u32,
    pub continues: bool,
}

impl Entry {
    fn pack(self) -> u64 {
        u64::from(self.slot) | u64::from(self.bytes) << 32 | u64::from(self.continues) << 63
    }

    fn unpack(word: u64) -> Self {
        let bytes = (word >> 32) as u32 & (u32::MAX >> 1);
        Self { slot: word as u32, bytes, continues: word >> 63 == 1 }
    }
}

#[derive(Debug)]
struct Shared {
    entries: Box<[AtomicU64]>,
    given: Padded<AtomicUsize>,
}

/// The end that gives.
#[derive(Debug)]
pub(super) struct Giver {
    shared: Arc<Shared>,
    given: usize,
}

/// The end that takes.
#[derive(Debug)]
pub(super) struct Taker {
    shared: Arc<Shared>,
    taken: usize,
    seen: usize,
}

/// Both ends of a hand-over for `capacity` slots.
pub(super) fn hand_over(capacity: usize) -> (Giver, Taker) {
    let entries = (0..capacity.next_power_of_two()).map(|_| AtomicU64::new(0)).collect();
    let shared = Arc::new(Shared { entries, given: Padded::default() });
    (Giver { shared: Arc::clone(&shared), given: 0 }, Taker { shared, taken: 0, seen: 0 })
}

impl Shared {
    fn entry(&self, position: usize) -> &AtomicU64 {
        &self.entries[position & (self.entries.len() - 1)]
    }
}

impl Giver {
    /// Writes an entry, which the taker does not see yet.
    pub fn stage(&mut self, entry: Entry) {
        self.shared.entry(self.given).store(entry.pack(), Ordering::Relaxed);
        self.given += 1;
    }

    /// Shows everything staged to the taker.
    pub fn publish(&self) {
        // Release: the entries, and the bytes of their slots, come before the position.
        self.shared.given.store(self.given, Ordering::Release);
    }
}

impl Taker {
    /// Entries that can be taken now.
    pub fn available(&mut self) -> usize {
        self.seen = self.shared.given.load(Ordering::Acquire);
        self.seen - self.taken
    }

    /// The entry `ahead` of the next one; the caller has looked at [`Taker::available`].
    pub fn peek(&self, ahead: usize) -> Entry {
        debug_assert!(self.taken + ahead < self.seen);
        Entry::unpack(self.shared.entry(self.taken + ahead).load(Ordering::Relaxed))
    }

    /// Takes the next entry.
    pub fn take(&mut self) -> Option<Entry> {
        if self.taken == self.seen && self.available() == 0 {
            return None;
        }
        let entry = self.peek(0);
        self.taken += 1;
        Some(entry)
    }
}
