//! The four rings of an AF_XDP socket: mapped descriptors with the cursors of `ring::shared`.

use std::io;
use std::os::fd::BorrowedFd;
use std::ptr::NonNull;
use std::sync::atomic::{Ordering, fence};

use millstream_host::mapping::Mapping;
use millstream_ring::shared::{SharedConsumer, SharedProducer, Word};
use rustix::mm::ProtFlags;
use rustix::net::xdp::XdpRingOffset;

/// `XDP_RING_NEED_WAKEUP`: the kernel does not poll this ring before it is called.
const NEED_WAKEUP: u32 = 1;

/// One entry of a receive or transmit ring: `struct xdp_desc`.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
pub struct Descriptor {
    /// Offset in the frame memory; in unaligned mode the upper 16 bits are added to the rest.
    pub address: u64,
    /// The length in bytes.
    pub length: u32,
    /// [`CONTINUES`], [`METADATA`], both or neither.
    pub options: u32,
}

/// The frame continues in the next descriptor (`XDP_PKT_CONTD`, Linux 6.6).
pub const CONTINUES: u32 = 1;

/// Metadata precedes the data to transmit (`XDP_TX_METADATA`, Linux 6.8).
pub const METADATA: u32 = 1 << 1;

/// The position of a ring of the socket `fd`.
#[derive(Debug, Clone, Copy)]
pub struct RingMapping {
    /// Its page offset (`XDP_*_PGOFF_*`).
    pub page_offset: u64,
    /// The offsets of its words and entries.
    pub offsets: XdpRingOffset,
    /// The number of its entries.
    pub entries: u32,
}

struct Parts<T> {
    mapping: Mapping,
    produced: Word,
    consumed: Word,
    flags: Word,
    items: NonNull<T>,
}

fn map<T>(fd: BorrowedFd<'_>, place: RingMapping) -> io::Result<Parts<T>> {
    let RingMapping { page_offset, offsets, entries } = place;
    let bytes = offsets.desc as usize + entries as usize * size_of::<T>();
    let mapping = Mapping::new(fd, page_offset, bytes, ProtFlags::READ | ProtFlags::WRITE)?;
    // SAFETY: the kernel places aligned words there; every ring keeps its mapping next to them.
    let word = |offset| unsafe { Word::new(mapping.at(offset, 1)) };
    // Linux before 5.4 has no flags: any word whose lowest bit is not used will do.
    let flags = word(offsets.flags.unwrap_or(offsets.consumer));
    let (produced, consumed) = (word(offsets.producer), word(offsets.consumer));
    let items = mapping.at(offsets.desc, entries as usize);
    Ok(Parts { mapping, produced, consumed, flags, items })
}

/// A ring that we fill: fill and transmit.
#[derive(Debug)]
pub struct OutRing<T> {
    cursor: SharedProducer<Word>,
    flags: Word,
    items: NonNull<T>,
    _mapping: Mapping,
}

// SAFETY: the entries between the cursors belong to this side alone, on any thread.
unsafe impl<T: Send> Send for OutRing<T> {}

impl<T: Copy> OutRing<T> {
    pub fn map(fd: BorrowedFd<'_>, place: RingMapping) -> io::Result<Self> {
        let Parts { mapping, produced, consumed, flags, items } = map(fd, place)?;
        let cursor = SharedProducer::new(produced, consumed, place.entries);
        Ok(Self { cursor, flags, items, _mapping: mapping })
    }

    /// Returns the free entries; reads the cursor again only if fewer than `want` are known.
    #[inline]
    pub fn room(&mut self, want: u32) -> u32 {
        self.cursor.room(want)
    }

    /// Writes the entry `ahead` places behind the first free one.
    ///
    /// # Panics
    /// If it is not within the [room](Self::room) that was last reported.
    #[inline]
    pub fn put(&mut self, ahead: u32, item: T) {
        assert!(ahead < self.cursor.room(0), "entry {ahead} is not free");
        // SAFETY: the cursor's index lies in the ring, and the entries of its room are ours to
        // write until they are handed over.
        unsafe { self.items.add(self.cursor.index(ahead)).write(item) };
    }

    /// Hands the next `count` entries to the kernel.
    #[inline]
    pub fn advance(&mut self, count: u32) {
        self.cursor.advance(count);
    }

    /// Returns the entries that the kernel has not taken yet.
    #[inline]
    pub fn pending(&self) -> u32 {
        self.cursor.pending()
    }

    /// Returns the number of entries that the kernel has ever taken, modulo 2^32.
    pub fn taken(&self) -> u32 {
        self.cursor.taken()
    }

    /// Whether the kernel must be called before it polls.
    #[inline]
    pub fn needs_wakeup(&self) -> bool {
        // A driver announces that it waits and then polls once more; we hand over and then check
        // whether it waits. One of the two must see the other's write, so the entries handed over
        // must not remain in this processor's store buffer meanwhile.
        fence(Ordering::SeqCst);
        self.flags.load(Ordering::Relaxed) & NEED_WAKEUP != 0
    }

    /// Does what a driver does when it stops polling.
    #[cfg(test)]
    pub fn ask_for_wakeup(&self) {
        self.flags.store(NEED_WAKEUP, Ordering::Relaxed);
    }
}

/// A ring that the kernel fills: receive and completion.
#[derive(Debug)]
pub struct InRing<T> {
    cursor: SharedConsumer<Word>,
    items: NonNull<T>,
    _mapping: Mapping,
}

// SAFETY: as for `OutRing`.
unsafe impl<T: Send> Send for InRing<T> {}

impl<T: Copy> InRing<T> {
    pub fn map(fd: BorrowedFd<'_>, place: RingMapping) -> io::Result<Self> {
        let Parts { mapping, produced, consumed, flags: _, items } = map(fd, place)?;
        let cursor = SharedConsumer::new(produced, consumed, place.entries);
        Ok(Self { cursor, items, _mapping: mapping })
    }

    /// Returns the entries to take; reads the cursor again only if fewer than `want` are known.
    #[inline]
    pub fn available(&mut self, want: u32) -> u32 {
        self.cursor.available(want)
    }

    /// Returns the entry `ahead` places behind the first one.
    ///
    /// # Panics
    /// If it is not among those that were last reported [available](Self::available).
    #[inline]
    pub fn get(&mut self, ahead: u32) -> T {
        assert!(ahead < self.cursor.available(0), "entry {ahead} is not there");
        // SAFETY: the cursor's index lies in the ring, and the entries that are available are ours
        // to read until they are given back.
        unsafe { self.items.add(self.cursor.index(ahead)).read() }
    }

    /// Gives `count` entries back to the kernel.
    #[inline]
    pub fn advance(&mut self, count: u32) {
        self.cursor.advance(count);
    }

    /// Reads the number of waiting entries.
    pub fn pending(&self) -> u32 {
        self.cursor.pending()
    }

    /// Returns the number of entries of the ring.
    pub fn entries(&self) -> u32 {
        self.cursor.entries()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::{AsFd, OwnedFd};

    /// Returns a file with the layout of a ring of four entries, of which `filled` wait.
    fn ring(filled: u32) -> (OwnedFd, RingMapping) {
        let file = rustix::fs::memfd_create("ring", rustix::fs::MemfdFlags::CLOEXEC).unwrap();
        rustix::fs::ftruncate(&file, 4096).unwrap();
        rustix::io::pwrite(&file, &filled.to_ne_bytes(), 0).unwrap();
        let offsets = XdpRingOffset { producer: 0, consumer: 32, desc: 128, flags: Some(64) };
        (file, RingMapping { page_offset: 0, offsets, entries: 4 })
    }

    #[test]
    fn free_entries_alone_are_written() {
        let (file, place) = ring(0);
        let mut out = OutRing::<u64>::map(file.as_fd(), place).unwrap();
        let not_asked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| out.put(0, 1)));
        assert!(not_asked.is_err(), "nobody has looked how many are free");
        assert_eq!(out.room(4), 4);
        (0..4).for_each(|ahead| out.put(ahead, 7));
        let beyond = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| out.put(4, 1)));
        assert!(beyond.is_err(), "it is the first one's place");
        out.advance(3);
        out.put(0, 7);
        let handed = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| out.put(1, 1)));
        assert!(handed.is_err(), "the kernel has it");
    }

    #[test]
    fn entries_that_are_there_alone_are_read() {
        let (file, place) = ring(2);
        let mut into = InRing::<u64>::map(file.as_fd(), place).unwrap();
        assert_eq!(into.available(1), 2);
        assert_eq!([0, 1].map(|ahead| into.get(ahead)), [0, 0]);
        let beyond = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| into.get(2)));
        assert!(beyond.is_err(), "the kernel may be writing it");
        into.advance(2);
        let given = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| into.get(0)));
        assert!(given.is_err(), "the kernel has it back");
    }
}
