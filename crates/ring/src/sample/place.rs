//! Addresses of a ring's items.

use crate::map::DoubleMap;
use crate::pool::Loan;
use std::cell::Cell;
use std::sync::Arc;

/// The memory of the items.
#[derive(Clone, Debug)]
pub(super) enum Memory {
    Own(Arc<DoubleMap>),
    Borrowed(Loan),
}

impl Memory {
    pub(super) fn capacity_bytes(&self) -> usize {
        match self {
            Self::Own(map) => map.capacity_bytes(),
            Self::Borrowed(loan) => loan.capacity_bytes(),
        }
    }
}

/// The addresses of the items of one side, which depend only on their positions.
///
/// Item `p` begins `(p - origin) * size` bytes, modulo the capacity, into the memory, for both
/// sides alike; the capacity is whole pages, so that is aligned. The origin is 0, or was set by the
/// writer that borrowed the memory. The last address is cached, because the next one is usually
/// near.
#[derive(Debug)]
pub(super) struct ItemLayout {
    memory: Memory,
    capacity_bytes: usize,
    origin: Cell<u64>,
    at: Cell<u64>,
    /// The offset of the item `at`.
    offset: Cell<usize>,
}

impl ItemLayout {
    pub(super) fn new(memory: Memory) -> Self {
        let capacity_bytes = memory.capacity_bytes();
        let [origin, at] = [0, 0].map(Cell::new);
        Self { memory, capacity_bytes, origin, at, offset: Cell::new(0) }
    }

    /// Returns the offset in bytes of the item at `position`.
    #[inline]
    fn offset<T>(&self, origin: u64, position: u64) -> usize {
        if self.origin.get() != origin {
            self.origin.set(origin);
            self.at.set(origin);
            self.offset.set(0);
        }
        let ahead = position.wrapping_sub(self.at.get());
        let mut offset = self.offset.get();
        if ahead <= (self.capacity_bytes / size_of::<T>()) as u64 {
            offset += ahead as usize * size_of::<T>();
            if offset >= self.capacity_bytes {
                offset -= self.capacity_bytes;
            }
        } else {
            offset = self.far_offset::<T>(origin, position);
        }
        self.at.set(position);
        self.offset.set(offset);
        offset
    }

    /// Returns the offset of an item at any distance, also before the origin.
    #[cold]
    fn far_offset<T>(&self, origin: u64, position: u64) -> usize {
        let bytes = (i128::from(position) - i128::from(origin)) * size_of::<T>() as i128;
        bytes.rem_euclid(self.capacity_bytes as i128) as usize
    }

    /// Returns the address of the item at `position`; null if the ring is empty and has no memory
    /// now.
    #[inline]
    pub(super) fn address<T>(&self, position: u64) -> *mut T {
        let (base, origin) = match &self.memory {
            Memory::Own(map) => (map.base().as_ptr(), 0),
            Memory::Borrowed(loan) => match loan.base() {
                (base, _) if base.is_null() => return std::ptr::null_mut(),
                found => found,
            },
        };
        // In bounds: offset < capacity, and the mapping is two capacities long.
        base.wrapping_add(self.offset::<T>(origin, position)).cast()
    }

    /// Returns the address for the writer, which borrows memory if there is none, and has it until
    /// it [puts the room down](Loan::put_down).
    #[inline]
    pub(super) fn room_address<T>(&self, position: u64) -> *mut T {
        if let Memory::Borrowed(loan) = &self.memory {
            loan.take_up(position);
        }
        self.address(position)
    }

    pub(super) fn capacity_bytes(&self) -> usize {
        self.capacity_bytes
    }

    #[inline]
    pub(super) fn loan(&self) -> Option<&Loan> {
        match &self.memory {
            Memory::Own(_) => None,
            Memory::Borrowed(loan) => Some(loan),
        }
    }

    /// Copies written items to the other half of the memory, which is needed only under Miri.
    #[cfg(miri)]
    pub(super) fn mirror<T>(&self, position: u64, items: usize) {
        let (from, half) = (self.address::<T>(position).cast::<u8>(), self.capacity_bytes);
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
