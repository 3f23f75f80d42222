//! A ring of the kernel, mapped over the beginning of a frame memory or by itself.

use std::io;
use std::os::fd::BorrowedFd;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;

use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

use crate::frame::{Frame, FrameMemory};

/// Bytes of the blocks in which the kernel allocates rings of slots: contiguous memory that it
/// finds on a machine that has run for long.
pub(super) const PAGE_BLOCK_BYTES: usize = 1 << 17;

/// Bytes of the `virtio_net_hdr` that the kernel writes in front of each received frame.
pub(super) const VIRTIO_BYTES: usize = 10;

/// Bytes of a slot for frames of up to `longest` bytes behind a header of `header` bytes: whole
/// cache lines. The kernel aligns the network header to 16 bytes, and keeps at least 16 for the
/// link's.
pub(super) fn slot_bytes(header: usize, longest: usize) -> usize {
    ((header + 16).next_multiple_of(16) + VIRTIO_BYTES + longest).next_multiple_of(64)
}

/// What the kernel says of a frame beside its bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct FrameNote {
    /// `TP_STATUS_…`.
    pub status: u32,
    /// Bytes of the whole frame; more than lie in the ring if it was too long.
    pub whole_bytes: u32,
    /// The 802.1Q tag, if the status says that there is one.
    pub tag: u32,
    /// The `virtio_net_hdr` of the frame: whether it is a train.
    pub virtio: [u8; VIRTIO_BYTES],
}

impl FrameNote {
    /// The sender left segmentation to hardware (`gso_type`).
    pub fn is_train(self) -> bool {
        self.virtio[1] != 0
    }

    /// The tag that the kernel took out of the frame.
    pub fn vlan(self) -> Option<u16> {
        (self.status & libc::TP_STATUS_VLAN_VALID != 0).then_some(self.tag as u16)
    }

    /// The kernel has checked the checksums, or hardware would have completed them.
    pub fn checksum_trusted(self) -> bool {
        self.status & (libc::TP_STATUS_CSUM_VALID | libc::TP_STATUS_CSUMNOTREADY) != 0
    }
}

/// The mapping.
#[derive(Debug)]
pub(super) struct Mapped {
    base: NonNull<u8>,
    bytes: usize,
    /// The memory that it lies in; it keeps the mapping. None: it lies by itself.
    memory: Option<Arc<FrameMemory>>,
}

// SAFETY: the mapping may be used from any thread, and is reached through one owner at a time.
unsafe impl Send for Mapped {}

impl Mapped {
    /// Maps a socket's ring over the beginning of `memory`.
    pub fn over(fd: BorrowedFd<'_>, memory: &Arc<FrameMemory>, bytes: usize) -> io::Result<Self> {
        assert!(bytes <= memory.len());
        // SAFETY: the range belongs to the memory, and no frame of it has been made yet.
        let base = unsafe { map(fd, memory.base().cast(), bytes, MapFlags::FIXED)? };
        Ok(Self { base, bytes, memory: Some(Arc::clone(memory)) })
    }

    /// Maps a socket's ring anywhere.
    pub fn alone(fd: BorrowedFd<'_>, bytes: usize) -> io::Result<Self> {
        // SAFETY: a new mapping at an address of the kernel's choice touches nothing that exists.
        let base = unsafe { map(fd, std::ptr::null_mut(), bytes, MapFlags::empty())? };
        Ok(Self { base, bytes, memory: None })
    }

    /// A word that the kernel writes, too.
    pub fn word(&self, at: usize) -> &AtomicU32 {
        assert!(at + 4 <= self.bytes && at.is_multiple_of(4));
        // SAFETY: it lies in the mapping, is aligned, and both sides treat it as an atomic.
        unsafe { AtomicU32::from_ptr(self.base.as_ptr().add(at).cast()) }
    }

    /// A header.
    ///
    /// # Safety
    /// A `T`, for which any bytes are valid, lies there, and the kernel does not write it now.
    pub unsafe fn read<T: Copy>(&self, at: usize) -> T {
        assert!(at + size_of::<T>() <= self.bytes);
        // SAFETY: it lies in the mapping; the caller promises the rest.
        unsafe { self.base.as_ptr().add(at).cast::<T>().read_unaligned() }
    }

    /// Bytes that belong to this side now.
    ///
    /// # Safety
    /// Nobody else, the kernel included, uses them meanwhile.
    pub unsafe fn bytes_mut(&mut self, at: usize, count: usize) -> &mut [u8] {
        assert!(at + count <= self.bytes);
        // SAFETY: they lie in the mapping; the caller promises the rest.
        unsafe { std::slice::from_raw_parts_mut(self.base.as_ptr().add(at), count) }
    }

    /// A received frame.
    ///
    /// # Safety
    /// As [`Frame::new`]. The ring is mapped over a frame memory.
    pub unsafe fn frame(&self, at: usize, length: u32, tag: u32) -> Frame {
        let memory = self.memory.as_ref().expect("a ring to receive lies in a frame memory");
        // SAFETY: the caller's promise.
        unsafe { Frame::new(memory, at as u64, length, length, tag) }
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        if self.memory.is_none() {
            // SAFETY: mapped in `alone`, and nothing borrowed from it remains.
            let _ = unsafe { munmap(self.base.as_ptr().cast(), self.bytes) };
        }
    }
}

/// # Safety
/// With `FIXED`, the range may be mapped anew.
unsafe fn map(
    fd: BorrowedFd<'_>,
    at: *mut core::ffi::c_void,
    bytes: usize,
    flags: MapFlags,
) -> io::Result<NonNull<u8>> {
    let access = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: the caller's promise.
    let base = unsafe { mmap(at, bytes, access, MapFlags::SHARED | flags, fd, 0)? };
    NonNull::new(base.cast()).ok_or_else(|| io::ErrorKind::OutOfMemory.into())
}
