//! The receive ring of `TPACKET_V2`: a slot for each frame, which is readable at once.

use std::io;
use std::mem;
use std::os::fd::BorrowedFd;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use libc::tpacket2_hdr;
use rustix::mm::{MapFlags, ProtFlags, mmap};

use super::socket;
use crate::frame::{Frame, FrameMemory};

/// The size of the blocks in which the kernel allocates rings of slots: contiguous memory that is
/// still available on a machine that has run for long.
const PAGE_BLOCK_BYTES: usize = 1 << 17;

/// The size of the `virtio_net_hdr` that the kernel writes in front of each received frame.
pub(super) const VIRTIO_BYTES: usize = 10;

/// Returns the size of a slot for frames of up to `longest` bytes behind the kernel's header: whole
/// cache lines. The kernel aligns the network header to 16 bytes, and reserves at least 16 for the
/// link's.
fn slot_bytes(longest: usize) -> usize {
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
    /// The `virtio_net_hdr` of the frame, which marks a train.
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
struct Mapped {
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

/// Our own mark on a slot whose frame is lent: it is neither `TP_STATUS_KERNEL`, so the kernel does
/// not use the slot, nor `TP_STATUS_USER`, so we do not read it again.
const LENT: u32 = 1 << 16;

/// The layout of the slots: as many as fit into a block, one after the other, block after block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SlotLayout {
    pub slot_bytes: usize,
    pub blocks: usize,
}

impl SlotLayout {
    /// Returns a layout with at least `frames` slots for frames of up to `longest` bytes.
    pub fn new(frames: usize, longest: usize) -> Self {
        let slot_bytes = slot_bytes(longest);
        let blocks = frames.max(2).div_ceil(PAGE_BLOCK_BYTES / slot_bytes);
        Self { slot_bytes, blocks }
    }

    pub fn bytes(self) -> usize {
        self.blocks * PAGE_BLOCK_BYTES
    }

    pub fn slots(self) -> usize {
        self.blocks * (PAGE_BLOCK_BYTES / self.slot_bytes)
    }
}

#[derive(Debug)]
pub(super) struct ReceiveRing {
    mapped: Mapped,
    shape: SlotLayout,
    /// Offset of the next slot, and of the end of its block.
    next: usize,
    block_end: usize,
    lent: usize,
}

impl ReceiveRing {
    pub fn new(
        fd: BorrowedFd<'_>,
        memory: &Arc<FrameMemory>,
        shape: SlotLayout,
    ) -> io::Result<Self> {
        let request = libc::tpacket_req {
            tp_block_size: PAGE_BLOCK_BYTES as u32,
            tp_block_nr: shape.blocks as u32,
            tp_frame_size: shape.slot_bytes as u32,
            tp_frame_nr: shape.slots() as u32,
        };
        socket::set(fd, libc::PACKET_RX_RING, &request)?;
        let mapped = Mapped::over(fd, memory, shape.bytes())?;
        Ok(Self { mapped, shape, next: 0, block_end: PAGE_BLOCK_BYTES, lent: 0 })
    }

    /// Returns the next frame, if there is one.
    pub fn next(&mut self) -> Option<(Frame, FrameNote)> {
        let at = self.next;
        let status = self.mapped.word(at);
        let said = status.load(Ordering::Acquire);
        if said & libc::TP_STATUS_USER == 0 {
            return None;
        }
        status.store(LENT, Ordering::Relaxed);
        // SAFETY: the slot is ours, and begins with this header.
        let header: tpacket2_hdr = unsafe { self.mapped.read(at) };
        self.next += self.shape.slot_bytes;
        if self.next + self.shape.slot_bytes > self.block_end {
            self.next = self.block_end % self.shape.bytes();
            self.block_end = self.next + PAGE_BLOCK_BYTES;
        }
        self.lent += 1;
        let (start, length) = (at + usize::from(header.tp_mac), header.tp_snaplen);
        let note = FrameNote {
            status: said,
            whole_bytes: header.tp_len,
            tag: u32::from(header.tp_vlan_tci),
            // SAFETY: the kernel has written it in front of the frame.
            virtio: unsafe { self.mapped.read(start - VIRTIO_BYTES) },
        };
        // SAFETY: the kernel has handed the slot over, and it is marked as lent.
        Some((unsafe { self.mapped.frame(start, length, (at / 64) as u32) }, note))
    }

    /// Gives a slot back to the kernel.
    pub fn give_back(&mut self, frame: &Frame) {
        self.lent -= 1;
        self.mapped
            .word(frame.tag() as usize * 64)
            .store(libc::TP_STATUS_KERNEL, Ordering::Release);
    }

    /// Returns the number of all slots, and of those that are lent.
    pub fn census(&self) -> (usize, usize) {
        (self.shape.slots(), self.lent)
    }
}

const _: () = assert!(mem::offset_of!(tpacket2_hdr, tp_status) == 0);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_hold_the_longest_frame_and_fill_blocks() {
        for (frames, longest) in [(4096, 1518), (4096, 9018), (1, 60), (512, 65_000)] {
            let shape = SlotLayout::new(frames, longest);
            assert!(shape.slots() >= frames.max(2), "{shape:?}");
            assert!(shape.slot_bytes >= longest + libc::TPACKET2_HDRLEN, "{shape:?}");
            assert!(shape.slot_bytes % 64 == 0 && shape.slot_bytes <= PAGE_BLOCK_BYTES);
        }
        assert_eq!(SlotLayout::new(4096, 1518), SlotLayout { slot_bytes: 1664, blocks: 53 });
    }
}
