//! The same interface for Miri, which cannot map memory twice: two halves of plain memory. A writer
//! to one half copies to the other.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ffi::c_void;
use std::io;

const ALIGN: usize = 4096;

fn layout(bytes: usize) -> io::Result<Layout> {
    Layout::from_size_align(bytes, ALIGN).map_err(|_| io::ErrorKind::OutOfMemory.into())
}

/// Allocates `bytes` bytes of zeros.
pub(super) fn reserve(bytes: usize, align: usize) -> io::Result<*mut c_void> {
    assert_eq!(align, ALIGN, "huge pages cannot be had in Miri");
    // SAFETY: the size is at least a page, so not zero.
    Ok(unsafe { alloc_zeroed(layout(bytes)?) }.cast())
}

/// Frees memory from [`reserve`].
///
/// # Safety
/// It is the whole allocation, and nothing refers to it.
pub(super) unsafe fn release(at: *mut c_void, bytes: usize) {
    let layout = layout(bytes).expect("it was had before");
    // SAFETY: the caller's duty.
    unsafe { dealloc(at.cast(), layout) };
}

/// Returns `None`: unknown under Miri.
pub(super) fn available_bytes() -> Option<u64> {
    None
}

/// Returns no file, because none is needed; huge pages do not exist here.
pub(super) fn memory_file(_bytes: usize, huge: bool) -> io::Result<()> {
    if huge { Err(io::ErrorKind::Unsupported.into()) } else { Ok(()) }
}

/// Leaves the memory unchanged.
///
/// # Safety
/// No requirement here.
#[expect(clippy::unnecessary_wraps, reason = "the kernel can refuse")]
pub(super) unsafe fn map_file(_at: *mut u8, _bytes: usize, _file: &()) -> io::Result<()> {
    Ok(())
}
