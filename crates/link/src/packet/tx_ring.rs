//! Transmission by `PACKET_TX_RING`: frames are copied into the ring's slots, and the kernel sends
//! all of them in one system call.

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::atomic::Ordering;

use super::link::SendResult;
use super::mapped::{Mapped, PAGE_BLOCK_BYTES};
use super::{ring2, socket};
use crate::frame::{Frame, FrameMemory};

/// The offset of a frame in its slot: behind the header, before the address that received frames
/// have there (`packet_mmap.rst`, "TX_RING").
const DATA: usize = libc::TPACKET2_HDRLEN - size_of::<libc::sockaddr_ll>();

/// The size of a ring that stays in a core's second-level cache together with the data copied into
/// it: the kernel sends out of the slots, so a longer ring only makes both sides wait for memory.
const RING_BYTES: usize = 1 << 19;

const PAGE_BYTES: usize = 4096;

/// Returns how many slots of a ring are useful for frames of up to `longest` bytes, a batch at
/// least.
pub(super) fn slots_max(longest: usize) -> usize {
    (RING_BYTES / slot_bytes(longest)).max(64)
}

/// Returns the size of a slot for frames of up to `longest` bytes. The kernel sends a frame as the
/// pieces between page boundaries, so none lies on more pages than it must: pages divide into
/// slots, or slots into pages.
fn slot_bytes(longest: usize) -> usize {
    match DATA + longest {
        short @ ..=PAGE_BYTES => short.next_power_of_two(),
        long => long.next_multiple_of(PAGE_BYTES),
    }
}

pub(super) struct TxRing {
    socket: OwnedFd,
    mapped: Mapped,
    shape: ring2::SlotLayout,
    /// Offset of the next slot, and of the end of its block.
    next: usize,
    block_end: usize,
    /// The slot written last, if the kernel may not have been called since.
    unsent: Option<usize>,
}

impl TxRing {
    /// Creates a ring of at least `frames` slots for frames of up to `longest` bytes. The kernel
    /// must skip frames that it cannot send, instead of trying them for ever.
    pub fn new(socket: OwnedFd, frames: usize, longest: usize) -> io::Result<Self> {
        let shape = ring2::SlotLayout::of_slots(frames, slot_bytes(longest));
        socket::set_number(socket.as_fd(), libc::PACKET_VERSION, socket::V2)?;
        socket::set_number(socket.as_fd(), libc::PACKET_LOSS, 1)?;
        ring2::request(socket.as_fd(), shape, libc::PACKET_TX_RING)?;
        let mapped = Mapped::alone(socket.as_fd(), shape.bytes())?;
        Ok(Self { socket, mapped, shape, next: 0, block_end: PAGE_BLOCK_BYTES, unsent: None })
    }

    /// Copies a frame into the next slot; returns false if the kernel still has that slot.
    pub fn push(&mut self, memory: &FrameMemory, parts: &[Frame], sent: &mut SendResult) -> bool {
        let at = self.next;
        if self.mapped.word(at).load(Ordering::Acquire) != libc::TP_STATUS_AVAILABLE {
            return false;
        }
        let mut end = at + DATA;
        for part in parts {
            let bytes = memory.bytes(part);
            // SAFETY: the kernel has given the slot back, and the slot is as long as the longest
            // frame, which the link has checked.
            unsafe { self.mapped.bytes_mut(end, bytes.len()) }.copy_from_slice(bytes);
            end += bytes.len();
        }
        let bytes = end - at - DATA;
        self.mapped.word(at + 4).store(bytes as u32, Ordering::Relaxed);
        self.mapped.word(at).store(libc::TP_STATUS_SEND_REQUEST, Ordering::Release);
        self.unsent = Some(at);
        self.next += self.shape.slot_bytes;
        if self.next + self.shape.slot_bytes > self.block_end {
            self.next = self.block_end % self.shape.bytes();
            self.block_end = self.next + PAGE_BLOCK_BYTES;
        }
        sent.frames += 1;
        sent.bytes += bytes as u64;
        true
    }

    /// Has the kernel send the written frames.
    pub fn flush(&mut self, sent: &mut SendResult) -> io::Result<()> {
        while let Some(last) = self.unsent {
            sent.syscalls += 1;
            let (fd, flags) = (self.socket.as_raw_fd(), libc::MSG_DONTWAIT);
            // SAFETY: no bytes are passed: the data to send lies in the ring.
            let rc = unsafe { libc::send(fd, std::ptr::null(), 0, flags) };
            let status = self.mapped.word(last).load(Ordering::Acquire);
            if status != libc::TP_STATUS_SEND_REQUEST {
                self.unsent = None;
            }
            if rc >= 0 {
                // The rest waits for room in the socket; the next flush continues.
                return Ok(());
            }
            let error = io::Error::last_os_error();
            match error.raw_os_error() {
                Some(libc::EINTR) => {}
                Some(libc::EAGAIN | libc::ENOBUFS) => return Ok(()),
                _ => return Err(socket::plain(error)),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_lies_on_as_few_pages_as_it_can() {
        for longest in [60, 1518, 3000, 4064, 4065, 9022, 65_000] {
            let slot_bytes = slot_bytes(longest);
            assert!(slot_bytes >= DATA + longest && slot_bytes <= PAGE_BLOCK_BYTES);
            let shape = ring2::SlotLayout::of_slots(64, slot_bytes);
            for slot in 0..PAGE_BLOCK_BYTES / shape.slot_bytes {
                let first = slot * shape.slot_bytes + DATA;
                let pages = (first + longest - 1) / PAGE_BYTES - first / PAGE_BYTES + 1;
                assert_eq!(pages, (DATA + longest).div_ceil(PAGE_BYTES), "{longest}, slot {slot}");
            }
        }
    }
}
