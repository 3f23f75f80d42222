//! Files that are mapped into memory: rings and counters shared with the kernel.

use std::io;
use std::os::fd::BorrowedFd;
use std::ptr::NonNull;

use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

/// A part of a file in our address space, unmapped on drop.
#[derive(Debug)]
pub struct Mapping {
    base: NonNull<u8>,
    bytes: usize,
}

// SAFETY: it is a range of addresses, which any thread may unmap. It is read and written through
// the values that own it, and only one thread at a time uses each of them.
unsafe impl Send for Mapping {}

impl Mapping {
    /// Maps `bytes` bytes at `offset` of the file of `fd`.
    ///
    /// # Errors
    /// The error of mmap(2).
    pub fn new(
        fd: BorrowedFd<'_>,
        offset: u64,
        bytes: usize,
        access: ProtFlags,
    ) -> io::Result<Self> {
        let flags = MapFlags::SHARED | MapFlags::POPULATE;
        // SAFETY: a new mapping at an address of the kernel's choice touches nothing that exists.
        let base = unsafe { mmap(std::ptr::null_mut(), bytes, access, flags, fd, offset)? };
        let base = NonNull::new(base.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { base, bytes })
    }

    /// Returns the address of its first byte.
    #[must_use]
    pub fn base(&self) -> *const u8 {
        self.base.as_ptr()
    }

    /// Returns the address `offset` bytes behind the first one, where `items` of them lie.
    ///
    /// # Panics
    /// If they do not lie within it.
    #[must_use]
    pub fn at<T>(&self, offset: u64, items: usize) -> NonNull<T> {
        let end = offset as usize + items * size_of::<T>();
        assert!(end <= self.bytes, "beyond a mapping of {} bytes", self.bytes);
        // SAFETY: the address is within the mapping, as was just checked.
        unsafe { self.base.add(offset as usize) }.cast()
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: mapped in `new`; every holder of addresses in it holds this value, too.
        let _ = unsafe { munmap(self.base.as_ptr().cast(), self.bytes) };
    }
}
