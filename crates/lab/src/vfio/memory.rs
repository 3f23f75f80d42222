//! A page of memory that a device may read and write.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::ptr::NonNull;

use rustix::mm::{MapFlags, ProtFlags, mlock, mmap_anonymous, munmap};

/// The number of a page frame in an entry of /proc/PID/pagemap, and the bit of a page that is in
/// memory (Linux, Documentation/admin-guide/mm/pagemap.rst).
const FRAME: u64 = (1 << 55) - 1;
const PRESENT: u64 = 1 << 63;

/// A page that stays in memory. A device may change it at any time, so it is never borrowed.
#[derive(Debug)]
pub struct DmaPage(NonNull<u8>);

impl DmaPage {
    /// Its size.
    pub const BYTES: usize = 4096;

    /// Allocates it, with zeros.
    ///
    /// # Errors
    /// The kernel's.
    pub fn new() -> io::Result<Self> {
        let (protection, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE);
        // SAFETY: a new mapping at a place that the kernel chooses.
        let start =
            unsafe { mmap_anonymous(std::ptr::null_mut(), Self::BYTES, protection, flags)? };
        let page = NonNull::new(start.cast()).map(Self).ok_or(io::ErrorKind::OutOfMemory)?;
        page.fill(0);
        // SAFETY: mapped above with this size.
        unsafe { mlock(start, Self::BYTES)? };
        Ok(page)
    }

    /// Its address in this process.
    #[must_use]
    pub fn address(&self) -> usize {
        self.0.as_ptr() as usize
    }

    /// Sets every byte.
    pub fn fill(&self, byte: u8) {
        for place in 0..Self::BYTES {
            // SAFETY: within the page, which is mapped as long as `self` is.
            unsafe { self.0.add(place).write_volatile(byte) };
        }
    }

    /// The number of bytes that are `byte`.
    #[must_use]
    pub fn count(&self, byte: u8) -> usize {
        // SAFETY: within the page, which is mapped as long as `self` is.
        let is = |place: &usize| unsafe { self.0.add(*place).read_volatile() } == byte;
        (0..Self::BYTES).filter(is).count()
    }

    /// Its address on the bus of a machine without an IOMMU. Only root may see it.
    ///
    /// # Errors
    /// The kernel's; `PermissionDenied` when it hides the address.
    pub fn physical_address(&self) -> io::Result<u64> {
        let mut entry = [0; 8];
        let number = (self.address() / Self::BYTES) as u64;
        File::open("/proc/self/pagemap")?.read_exact_at(&mut entry, number * 8)?;
        let entry = u64::from_ne_bytes(entry);
        match entry & FRAME {
            0 => Err(io::ErrorKind::PermissionDenied.into()),
            _ if entry & PRESENT == 0 => Err(io::ErrorKind::NotFound.into()),
            frame => Ok(frame * Self::BYTES as u64),
        }
    }
}

impl Drop for DmaPage {
    fn drop(&mut self) {
        // SAFETY: it was mapped with this size, and no device reaches it any more.
        let _ = unsafe { munmap(self.0.as_ptr().cast(), Self::BYTES) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_keeps_its_bytes_and_has_a_place_in_memory() {
        let page = DmaPage::new().unwrap();
        assert_eq!((page.count(0), page.count(7)), (4096, 0));
        page.fill(7);
        assert_eq!(page.count(7), 4096);
        match page.physical_address() {
            Ok(address) => assert!(address > 0 && address.is_multiple_of(4096)),
            Err(error) => assert_eq!(error.kind(), io::ErrorKind::PermissionDenied, "{error}"),
        }
    }
}
