//! Calls to the kernel.

use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use rustix::mm::{MapFlags, ProtFlags, mmap, mmap_anonymous, munmap};
use std::ffi::c_void;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::ptr;

/// Reserves addresses for `bytes` bytes, without memory.
pub(super) fn reserve(bytes: usize, _align: usize) -> io::Result<*mut c_void> {
    let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
    // SAFETY: a new anonymous mapping at an address of the kernel's choice touches nothing.
    Ok(unsafe { mmap_anonymous(ptr::null_mut(), bytes, ProtFlags::empty(), flags) }?)
}

/// Releases addresses from [`reserve`], and everything mapped there.
///
/// # Safety
/// It is the whole range, and nothing refers to it.
pub(super) unsafe fn release(at: *mut c_void, bytes: usize) {
    // SAFETY: the caller's duty.
    let unmapped = unsafe { munmap(at, bytes) };
    debug_assert!(unmapped.is_ok(), "munmap of an own mapping cannot fail");
}

/// Returns the memory that is available without swapping (proc_meminfo(5)). The kernel would not
/// refuse more: it overcommits pages, and kills a process when they are missing.
pub(super) fn available_bytes() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let rest = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    rest.trim().strip_suffix(" kB")?.parse::<u64>().ok()?.checked_mul(1024)
}

pub(super) fn memory_file(bytes: usize, huge: bool) -> io::Result<OwnedFd> {
    let mut flags = MemfdFlags::CLOEXEC;
    if huge {
        flags |= MemfdFlags::HUGETLB | MemfdFlags::HUGE_2MB;
    }
    let file = memfd_create(c"millstream-ring", flags)?;
    ftruncate(&file, bytes as u64)?;
    Ok(file)
}

/// Maps the whole of `file` at `at`, replacing what is there.
///
/// # Safety
/// `at..at + bytes` must be address space that the caller owns and that nothing refers to.
pub(super) unsafe fn map_file(at: *mut u8, bytes: usize, file: impl AsFd) -> io::Result<()> {
    let flags = MapFlags::SHARED | MapFlags::FIXED | MapFlags::POPULATE;
    // SAFETY: the caller's duty.
    unsafe { mmap(at.cast(), bytes, ProtFlags::READ | ProtFlags::WRITE, flags, file, 0) }?;
    Ok(())
}
