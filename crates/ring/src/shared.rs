//! Positions in a ring whose two words are shared with another owner: the kernel, a device, a
//! process.
//!
//! The other side is trusted only with its own word, and the layout is given (two `u32` that count
//! items and wrap; the entries are a power of two), so this is the cursor for the four rings of
//! AF_XDP (`Documentation/networking/af_xdp.rst`, "Rings"; the ordering is that of
//! `net/xdp/xsk_queue.h`: a `Release` store of one's own word hands entries over, an `Acquire` load
//! of the other's word receives them).
//!
//! Each side keeps a copy of the other's last position and polls again only when that does not
//! grant enough: in steady state one poll serves a whole lap or batch.

use std::ops::Deref;
#[cfg(not(loom))]
use std::ptr::NonNull;

use crate::sync::{AtomicU32, Ordering};

/// One word of a ring, somewhere in a mapping.
#[cfg(not(loom))]
#[derive(Debug, Clone, Copy)]
pub struct Word(NonNull<AtomicU32>);

#[cfg(not(loom))]
// SAFETY: it is a shared reference to an atomic in all but its lifetime (`Word::new`).
unsafe impl Send for Word {}

#[cfg(not(loom))]
impl Word {
    /// Makes a word at `address`.
    ///
    /// # Safety
    /// `address` is aligned to 4 bytes and stays mapped, readable and writable for as long as this
    /// value or a copy of it is used.
    #[must_use]
    pub unsafe fn new(address: NonNull<u32>) -> Self {
        Self(address.cast())
    }
}

#[cfg(not(loom))]
impl Deref for Word {
    type Target = AtomicU32;

    fn deref(&self) -> &AtomicU32 {
        // SAFETY: mapped and aligned while `self` is used (`Word::new`); atomics may be shared.
        unsafe { self.0.as_ref() }
    }
}

/// The side that fills entries.
#[derive(Debug)]
pub struct SharedProducer<W> {
    produced: W,
    consumed: W,
    entries: u32,
    position: u32,
    /// Entries that this side may fill, by the last poll.
    room: u32,
}

impl<W: Deref<Target = AtomicU32>> SharedProducer<W> {
    /// Makes the producing side of a ring of `entries`, from the present positions of its words.
    ///
    /// # Panics
    /// Unless `entries` is a power of two.
    pub fn new(produced: W, consumed: W, entries: u32) -> Self {
        assert!(entries.is_power_of_two(), "a ring of {entries} entries");
        let position = produced.load(Ordering::Relaxed);
        Self { produced, consumed, entries, position, room: 0 }
    }

    /// Returns the entries that may be filled now; polls the other side only if fewer than `want`
    /// are known to be free.
    #[inline]
    pub fn room(&mut self, want: u32) -> u32 {
        if self.room < want {
            self.room = self.entries.saturating_sub(self.pending());
        }
        self.room
    }

    /// Returns the index of the entry that is `ahead` of the first free one.
    #[inline]
    #[must_use]
    pub fn index(&self, ahead: u32) -> usize {
        (self.position.wrapping_add(ahead) & (self.entries - 1)) as usize
    }

    /// Passes the next `count` entries to the other side.
    ///
    /// # Panics
    /// If that is more than the room last reported.
    #[inline]
    pub fn advance(&mut self, count: u32) {
        assert!(count <= self.room, "produced more than the room reported");
        self.room -= count;
        self.position = self.position.wrapping_add(count);
        // Release: the entries are written before the other side can see them.
        self.produced.store(self.position, Ordering::Release);
    }

    /// Returns the entries that the other side has not taken yet.
    #[inline]
    #[must_use]
    pub fn pending(&self) -> u32 {
        // Acquire: the other side did its last reads of these entries before.
        self.position.wrapping_sub(self.consumed.load(Ordering::Acquire))
    }

    /// Returns the number of entries that the other side has ever taken, modulo 2^32: no change
    /// means no progress.
    #[must_use]
    pub fn taken(&self) -> u32 {
        self.consumed.load(Ordering::Relaxed)
    }
}

/// The side that takes entries.
#[derive(Debug)]
pub struct SharedConsumer<W> {
    produced: W,
    consumed: W,
    entries: u32,
    position: u32,
    /// Entries that this side may take, by the last poll.
    available: u32,
}

impl<W: Deref<Target = AtomicU32>> SharedConsumer<W> {
    /// Makes the consuming side of a ring of `entries`, from the present positions of its words.
    ///
    /// # Panics
    /// Unless `entries` is a power of two.
    pub fn new(produced: W, consumed: W, entries: u32) -> Self {
        assert!(entries.is_power_of_two(), "a ring of {entries} entries");
        let position = consumed.load(Ordering::Relaxed);
        Self { produced, consumed, entries, position, available: 0 }
    }

    /// Returns the entries that may be taken now; polls the other side only if fewer than `want`
    /// are known.
    #[inline]
    pub fn available(&mut self, want: u32) -> u32 {
        if self.available < want {
            self.available = self.pending().min(self.entries);
        }
        self.available
    }

    /// Returns the index of the entry that is `ahead` of the first one.
    #[inline]
    #[must_use]
    pub fn index(&self, ahead: u32) -> usize {
        (self.position.wrapping_add(ahead) & (self.entries - 1)) as usize
    }

    /// Returns `count` entries to the other side, to be filled again.
    ///
    /// # Panics
    /// If that is more than was last reported available.
    #[inline]
    pub fn advance(&mut self, count: u32) {
        assert!(count <= self.available, "consumed more than was available");
        self.available -= count;
        self.position = self.position.wrapping_add(count);
        // Release: the entries are read before the other side can fill them again.
        self.consumed.store(self.position, Ordering::Release);
    }

    /// Returns the entries that wait to be taken, after a poll of the other side.
    #[inline]
    #[must_use]
    pub fn pending(&self) -> u32 {
        // Acquire: the entries were written before the other side showed them.
        self.produced.load(Ordering::Acquire).wrapping_sub(self.position)
    }

    /// Returns the number of entries of the ring.
    #[must_use]
    pub fn entries(&self) -> u32 {
        self.entries
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::sync::Arc;

    type Side = Arc<AtomicU32>;

    fn ring(entries: u32, start: u32) -> (SharedProducer<Side>, SharedConsumer<Side>) {
        let [produced, consumed] = [0, 0].map(|_| Arc::new(AtomicU32::new(start)));
        let producer = SharedProducer::new(Arc::clone(&produced), Arc::clone(&consumed), entries);
        (producer, SharedConsumer::new(produced, consumed, entries))
    }

    #[test]
    fn positions_wrap_past_the_largest_word() {
        let (mut producer, mut consumer) = ring(4, u32::MAX - 1);
        assert_eq!((producer.room(1), consumer.available(1)), (4, 0));
        assert_eq!([0, 1, 2, 3].map(|ahead| producer.index(ahead)), [2, 3, 0, 1]);
        producer.advance(4);
        assert_eq!((producer.room(1), consumer.available(1)), (0, 4));
        consumer.advance(3);
        assert_eq!((producer.room(1), producer.pending(), consumer.pending()), (3, 1, 1));
        assert_eq!(producer.taken(), 1, "and not how many wait");
        assert_eq!((consumer.index(0), producer.index(0)), (1, 2));
    }

    #[test]
    fn the_other_side_is_looked_at_only_when_the_copy_grants_too_little() {
        let (mut producer, mut consumer) = ring(8, 0);
        assert_eq!(producer.room(1), 8);
        producer.advance(2);
        assert_eq!(consumer.available(1), 2);
        producer.advance(3);
        assert_eq!(consumer.available(2), 2, "two are known, and two were wanted");
        assert_eq!(consumer.available(3), 5);
        consumer.advance(5);
        assert_eq!(producer.room(3), 3);
        assert_eq!(producer.room(4), 8);
    }

    #[test]
    fn a_word_that_lies_does_not_grant_more_than_the_ring() {
        let (mut producer, mut consumer) = ring(8, 0);
        producer.consumed.store(9, Ordering::Relaxed);
        assert_eq!(producer.room(1), 0, "consumed before it was produced");
        consumer.produced.store(1000, Ordering::Relaxed);
        assert_eq!(consumer.available(1), 8);
    }

    #[test]
    #[should_panic(expected = "produced more than the room")]
    fn more_than_the_room_is_refused() {
        let (mut producer, _consumer) = ring(4, 0);
        producer.room(1);
        producer.advance(5);
    }
}
