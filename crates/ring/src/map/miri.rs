//! The same for Miri, which cannot map memory twice: two halves of plain memory. Whoever writes to
//! one copies to the other.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ffi::c_void;
use std::io;

const ALIGN: usize = 4096;

fn layout(bytes: usize) -> io::Result<Layout> {
    Layout::from_size_align(bytes, ALIGN).map_err(|_| io::ErrorKind::OutOfMemory.into())
}

/// Memory of zeros for `bytes` bytes.
pub(super) fn reserve(bytes: usize, align: usize) -> io::Result<*mut c_void> {
    assert_eq!(align, ALIGN, "huge pages cannot be had in Miri");
    // SAFETY: of a page and more, so not empty.
    Ok(unsafe { alloc_zeroed(layout(bytes)?) }.cast())
}

/// Gives back what [`reserve`] gave.
///
/// # Safety
/// It is the whole of it, and nothing refers to it.
pub(super) unsafe fn release(at: *mut c_void, bytes: usize) {
    let layout = layout(bytes).expect("it was had before");
    // SAFETY: passed on to the caller.
    unsafe { dealloc(at.cast(), layout) };
}

/// Unknown.
pub(super) fn available_bytes() -> Option<u64> {
    None
}

/// None is needed, and there are no huge pages.
pub(super) fn memory_file(_bytes: usize, huge: bool) -> io::Result<()> {
    if huge { Err(io::ErrorKind::Unsupported.into()) } else { Ok(()) }
}

/// Leaves the memory that is there.
///
/// # Safety
/// None is needed here.
#[expect(clippy::unnecessary_wraps, reason = "the kernel can refuse")]
pub(super) unsafe fn map_file(_at: *mut u8, _bytes: usize, _file: &()) -> io::Result<()> {
    Ok(())
}
