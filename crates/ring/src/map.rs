//! An anonymous memory file mapped twice in a row, so that a circular buffer is contiguous across
//! its end.
//!
//! ```text
//!   address   base                base + capacity       base + 2·capacity
//!             ├────────────────────┼─────────────────────┤
//!   file      0 ……………… capacity    0 ……………… capacity
//! ```
//!
//! Byte `base + i` and byte `base + capacity + i` are the same memory, therefore any run of up to
//! `capacity` bytes from any start below `capacity` is contiguous (memfd_create(2), mmap(2) with
//! `MAP_FIXED`).

#[cfg_attr(miri, path = "map/miri.rs")]
mod os;

use os::{available_bytes, map_file, memory_file, release, reserve};
use std::ffi::c_void;
use std::io;
use std::ptr::NonNull;

const HUGE_PAGE_BYTES: usize = 2 << 20;

/// The reason why memory could not be mapped.
#[derive(Debug, thiserror::Error)]
#[error(
    "cannot map a ring of {bytes} bytes ({step}: {source}): use smaller buffers, or check `ulimit \
     -v` and `ulimit -f`, and free memory"
)]
pub struct MapError {
    /// Size of the ring, in bytes; it takes twice that in addresses.
    pub bytes: usize,
    /// The step that failed.
    pub step: &'static str,
    /// The kernel's error.
    pub source: io::Error,
}

/// A double mapping. Unmapped on drop.
#[derive(Debug)]
pub struct DoubleMap {
    base: NonNull<u8>,
    capacity_bytes: usize,
    reserved: NonNull<c_void>,
    reserved_bytes: usize,
}

// SAFETY: a DoubleMap is only addresses that stay valid until drop; access to the bytes goes
// through raw pointers whose users ensure exclusion.
unsafe impl Send for DoubleMap {}
// SAFETY: as above; every method takes `&self` and reads immutable fields.
unsafe impl Sync for DoubleMap {}

impl DoubleMap {
    /// Maps at least `min_bytes`, rounded up to whole pages, filled with zeros and present in
    /// memory (no page fault later); in huge pages if they are wanted and granted.
    ///
    /// # Errors
    /// [`MapError`] when the kernel refuses normal pages.
    pub fn new(min_bytes: usize, huge_pages: bool) -> Result<Self, MapError> {
        let huge = huge_pages.then(|| Self::with_pages(min_bytes, true).ok()).flatten();
        huge.map_or_else(|| Self::with_pages(min_bytes, false), Ok)
    }

    /// Returns the address of the first byte.
    #[must_use]
    pub fn base(&self) -> NonNull<u8> {
        self.base
    }

    /// Returns the bytes before the buffer repeats: a whole number of pages.
    #[must_use]
    pub fn capacity_bytes(&self) -> usize {
        self.capacity_bytes
    }

    fn with_pages(min_bytes: usize, huge: bool) -> Result<Self, MapError> {
        let page_bytes = if huge { HUGE_PAGE_BYTES } else { rustix::param::page_size() };
        let fail = |step| move |source: io::Error| MapError { bytes: min_bytes, step, source };
        let too_large = || fail("size")(io::ErrorKind::OutOfMemory.into());
        let capacity_bytes = min_bytes
            .max(1)
            .checked_next_multiple_of(page_bytes)
            .filter(|bytes| *bytes <= isize::MAX as usize / 4)
            .ok_or_else(too_large)?;
        if !huge && available_bytes().is_some_and(|available| capacity_bytes as u64 > available) {
            return Err(too_large());
        }
        let file = memory_file(capacity_bytes, huge).map_err(fail("memfd_create"))?;

        // One page more than needed, so that the base can be aligned to the page.
        let reserved_bytes = 2 * capacity_bytes + page_bytes;
        let reserved = reserve(reserved_bytes, page_bytes).map_err(fail("reserve addresses"))?;
        let skip = reserved.cast::<u8>().align_offset(page_bytes);
        let base = reserved.cast::<u8>().wrapping_add(skip);
        let map = Self {
            base: NonNull::new(base).expect("mmap never answers with address zero"),
            capacity_bytes,
            reserved: NonNull::new(reserved).expect("mmap never answers with address zero"),
            reserved_bytes,
        };
        // From here on `map` unmaps everything if a step fails.
        for half in 0..2 {
            let at = base.wrapping_add(half * capacity_bytes);
            // SAFETY: `at..at + capacity_bytes` lies inside the range reserved above, which no
            // other code uses.
            unsafe { map_file(at, capacity_bytes, &file) }.map_err(fail("mmap"))?;
        }
        Ok(map)
    }
}

impl Drop for DoubleMap {
    fn drop(&mut self) {
        // SAFETY: the range was reserved by `with_pages`, belongs to this value alone, and every
        // user of its addresses holds this value alive.
        unsafe { release(self.reserved.as_ptr(), self.reserved_bytes) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg_attr(miri, ignore = "Miri cannot map memory twice; the rings copy there")]
    fn the_second_half_is_the_first() {
        let map = DoubleMap::new(5000, false).unwrap();
        assert_eq!(map.capacity_bytes() % rustix::param::page_size(), 0);
        let (base, capacity) = (map.base().as_ptr(), map.capacity_bytes());
        for at in [0, 1, 4095, capacity - 1] {
            // SAFETY: both addresses lie in the mapping, and only this thread uses it.
            let twin = unsafe {
                base.add(at).write_volatile(at as u8 ^ 0x5a);
                base.add(capacity + at).read_volatile()
            };
            assert_eq!(twin, at as u8 ^ 0x5a);
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "there are no huge pages in Miri")]
    fn huge_pages_are_granted_or_normal_ones_instead() {
        let bytes = DoubleMap::new(1, true).unwrap().capacity_bytes();
        assert!([HUGE_PAGE_BYTES, rustix::param::page_size()].contains(&bytes));
    }

    #[test]
    #[cfg_attr(miri, ignore = "Miri does not know what memory there is")]
    fn an_impossible_size_is_an_error_that_says_what_to_do() {
        // The second could be mapped, and the process would then be killed for lack of memory.
        for bytes in [usize::MAX, 32 << 40] {
            let error = DoubleMap::new(bytes, false).unwrap_err().to_string();
            assert!(error.contains("(size: out of memory): use smaller buffers"), "{error}");
        }
    }
}
