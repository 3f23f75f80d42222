//! Addresses of a ring's items.

use crate::map::DoubleMap;
use std::cell::Cell;
use std::sync::Arc;

/// The addresses of the items of one side, which depend only on their positions.
///
/// Item `p` begins `p * size` bytes, modulo the capacity, into the memory, for both sides alike;
/// the capacity is whole pages, so that is aligned. The last address is cached, because the next
/// one is usually near.
#[derive(Debug)]
pub(super) struct ItemLayout {
    memory: Arc<DoubleMap>,
    at: Cell<u64>,
    /// The offset of the item `at`.
    offset: Cell<usize>,
}

impl ItemLayout {
    pub(super) fn new(memory: Arc<DoubleMap>) -> Self {
        Self { memory, at: Cell::new(0), offset: Cell::new(0) }
    }

    /// Returns the offset in bytes of the item at `position`.
    #[inline]
    fn offset<T>(&self, position: u64) -> usize {
        let ahead = position.wrapping_sub(self.at.get());
        let mut offset = self.offset.get();
        if ahead <= (self.capacity_bytes() / size_of::<T>()) as u64 {
            offset += ahead as usize * size_of::<T>();
            if offset >= self.capacity_bytes() {
                offset -= self.capacity_bytes();
            }
        } else {
            offset = self.far_offset::<T>(position);
        }
        self.at.set(position);
        self.offset.set(offset);
        offset
    }

    /// Returns the offset of an item at any distance.
    #[cold]
    fn far_offset<T>(&self, position: u64) -> usize {
        (u128::from(position) * size_of::<T>() as u128 % self.capacity_bytes() as u128) as usize
    }

    /// Returns the address of the item at `position`.
    #[inline]
    pub(super) fn address<T>(&self, position: u64) -> *mut T {
        // In bounds: offset < capacity, and the mapping is two capacities long.
        self.memory.base().as_ptr().wrapping_add(self.offset::<T>(position)).cast()
    }

    #[inline]
    pub(super) fn capacity_bytes(&self) -> usize {
        self.memory.capacity_bytes()
    }

    /// Copies written items to the other half of the memory, which is needed only under Miri.
    #[cfg(miri)]
    pub(super) fn mirror<T>(&self, position: u64, items: usize) {
        let (from, half) = (self.address::<T>(position).cast::<u8>(), self.capacity_bytes());
        let bytes = items * size_of::<T>();
        let before = bytes.min(half - self.offset.get());
        let behind = from.wrapping_add(before);
        // SAFETY: bytes before the end of the first half are copied behind it, and the other way
        // round: all are bytes of items that the writer owns and did not yet produce, in both
        // halves.
        unsafe {
            from.wrapping_add(half).copy_from_nonoverlapping(from, before);
            behind.wrapping_sub(half).copy_from_nonoverlapping(behind, bytes - before);
        }
    }
}
