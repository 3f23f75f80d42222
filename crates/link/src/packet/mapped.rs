//! A ring of the kernel, mapped over the beginning of a frame memory.

use std::io;
use std::os::fd::BorrowedFd;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;

use rustix::mm::{MapFlags, ProtFlags, mmap};

use crate::frame::{Frame, FrameMemory};

/// The size of the blocks in which the kernel allocates rings of slots: contiguous memory that is
/// still available on a machine that has run for long.
pub(super) const PAGE_BLOCK_BYTES: usize = 1 << 17;

/// The size of the `virtio_net_hdr` that the kernel writes in front of each received frame.
pub(super) const VIRTIO_BYTES: usize = 10;

/// Returns the size of a slot for frames of up to `longest` bytes behind the kernel's header: whole
/// cache lines. The kernel aligns the network header to 16 bytes, and reserves at least 16 for the
/// link's.
pub(super) fn slot_bytes(longest: usize) -> usize {
    let header = (libc::TPACKET2_HDRLEN + 16).next_multiple_of(16);
    (header + VIRTIO_BYTES + longest).next_multiple_of(64)
}

/// The kernel's properties of a frame.
#[derive(Debug, Clone, Copy)]
pub(super) struct FrameNote {
    /// `TP_STATUS_…`.
    pub status: u32,
    /// The length of the whole frame, bytes; more than lie in the ring if it was too long.
    pub whole_bytes: u32,
    /// The 802.1Q tag, if the status says that there is one.
    pub tag: u32,
    /// The `virtio_net_hdr` of the frame, which marks a GSO batch.
    pub virtio: [u8; VIRTIO_BYTES],
}

impl FrameNote {
    /// Whether the sender left segmentation to hardware (`gso_type`).
    pub fn is_train(self) -> bool {
        self.virtio[1] != 0
    }

    /// Returns the tag that the kernel removed from the frame.
    pub fn vlan(self) -> Option<u16> {
        (self.status & libc::TP_STATUS_VLAN_VALID != 0).then_some(self.tag as u16)
    }

    /// Whether the kernel has checked the checksums, or hardware would have completed them.
    pub fn checksum_trusted(self) -> bool {
        self.status & (libc::TP_STATUS_CSUM_VALID | libc::TP_STATUS_CSUMNOTREADY) != 0
    }
}

/// The mapping.
#[derive(Debug)]
pub(super) struct Mapped {
    base: NonNull<u8>,
    bytes: usize,
    /// The memory that it lies in, which keeps the mapping.
    memory: Arc<FrameMemory>,
}

// SAFETY: the mapping may be used from any thread, and is reached through one owner at a time.
unsafe impl Send for Mapped {}

impl Mapped {
    /// Maps a socket's ring over the beginning of `memory`.
    pub fn over(fd: BorrowedFd<'_>, memory: &Arc<FrameMemory>, bytes: usize) -> io::Result<Self> {
        assert!(bytes <= memory.len());
        let (at, access) = (memory.base().cast(), ProtFlags::READ | ProtFlags::WRITE);
        let flags = MapFlags::SHARED | MapFlags::FIXED;
        // SAFETY: the range belongs to the memory, and there is no frame of it yet.
        let base = unsafe { mmap(at, bytes, access, flags, fd, 0)? };
        let base = NonNull::new(base.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { base, bytes, memory: Arc::clone(memory) })
    }

    /// Returns a word that the kernel writes, too.
    pub fn word(&self, at: usize) -> &AtomicU32 {
        assert!(at + 4 <= self.bytes && at % 4 == 0);
        // SAFETY: it lies in the mapping, is aligned, and both sides treat it as an atomic.
        unsafe { AtomicU32::from_ptr(self.base.as_ptr().add(at).cast()) }
    }

    /// Reads a header.
    ///
    /// # Safety
    /// A `T`, for which any bytes are valid, lies there, and the kernel does not write it now.
    pub unsafe fn read<T: Copy>(&self, at: usize) -> T {
        assert!(at + size_of::<T>() <= self.bytes);
        // SAFETY: it lies in the mapping; the caller promises the rest.
        unsafe { self.base.as_ptr().add(at).cast::<T>().read_unaligned() }
    }

    /// Returns a received frame.
    ///
    /// # Safety
    /// As [`Frame::new`].
    pub unsafe fn frame(&self, at: usize, length: u32, tag: u32) -> Frame {
        // SAFETY: the caller promises it.
        unsafe { Frame::new(&self.memory, at as u64, length, length, tag) }
    }
}
