//! The receive ring of `TPACKET_V3`: blocks into which the kernel packs frames. A block is readable
//! when it is full or when its time is up.

use std::io;
use std::mem;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use libc::{tpacket_block_desc, tpacket_hdr_v1, tpacket3_hdr};

use super::mapped::{FrameNote, Mapped, VIRTIO_BYTES};
use super::socket;
use crate::frame::{Frame, FrameMemory};

/// The offsets of the members of a block's header.
const STATUS: usize = mem::offset_of!(tpacket_block_desc, hdr);
const COUNT: usize = STATUS + mem::offset_of!(tpacket_hdr_v1, num_pkts);
const FIRST: usize = STATUS + mem::offset_of!(tpacket_hdr_v1, offset_to_first_pkt);

/// The default size of a ring, bytes. The kernel uses all blocks in rotation, so a longer ring
/// moves every frame through memory that has left the caches: 37 MB instead cost a third of the
/// throughput of jumbo frames.
const BYTES_MAX: usize = 8 << 20;

/// The blocks, their size, and how long the kernel may keep one that is not full.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BlockLayout {
    pub block_bytes: usize,
    pub blocks: usize,
    pub retire_ms: u32,
}

impl BlockLayout {
    /// Returns a layout for `frames` frames of `longest` bytes, as far as [`BYTES_MAX`] allows.
    pub fn new(frames: usize, longest: usize, block_bytes: Option<usize>, retire_ms: u32) -> Self {
        let block_bytes = block_bytes.unwrap_or(1 << 18);
        let frame_bytes = super::mapped::slot_bytes(libc::TPACKET3_HDRLEN, longest);
        let wanted = frames.div_ceil(block_bytes / frame_bytes);
        let blocks = wanted.min(BYTES_MAX / block_bytes).max(4);
        Self { block_bytes, blocks, retire_ms }
    }

    pub fn bytes(self) -> usize {
        self.blocks * self.block_bytes
    }

    /// Returns how many frames of `longest` bytes fit.
    pub fn frames(self, longest: usize) -> usize {
        self.blocks * (self.block_bytes / super::mapped::slot_bytes(libc::TPACKET3_HDRLEN, longest))
    }
}

#[derive(Debug)]
pub(super) struct Ring3 {
    mapped: Mapped,
    shape: BlockLayout,
    /// The present block, or the next one.
    block: usize,
    /// Its unread frames, and the offset of the next one.
    left: u32,
    at: usize,
    /// For each block: lent frames, plus one while it is being read. At zero it is given back.
    held: Vec<u32>,
    lent: usize,
}

impl Ring3 {
    pub fn new(
        fd: BorrowedFd<'_>,
        memory: &Arc<FrameMemory>,
        shape: BlockLayout,
    ) -> io::Result<Self> {
        const SLOT: u32 = 2048;
        let request = libc::tpacket_req3 {
            tp_block_size: shape.block_bytes as u32,
            tp_block_nr: shape.blocks as u32,
            tp_frame_size: SLOT,
            tp_frame_nr: (shape.bytes() / SLOT as usize) as u32,
            tp_retire_blk_tov: shape.retire_ms,
            tp_sizeof_priv: 0,
            tp_feature_req_word: 0,
        };
        socket::set(fd, libc::PACKET_RX_RING, &request)?;
        let mapped = Mapped::over(fd, memory, shape.bytes())?;
        let held = vec![0; shape.blocks];
        Ok(Self { mapped, shape, block: 0, left: 0, at: 0, held, lent: 0 })
    }

    /// Returns the next frame, if there is one.
    pub fn next(&mut self) -> Option<(Frame, FrameNote)> {
        while self.left == 0 {
            self.open_block()?;
        }
        let at = self.at;
        // SAFETY: the block is ours, and the kernel has put a header there.
        let header: tpacket3_hdr = unsafe { self.mapped.read(at) };
        let block = self.block;
        self.held[block] += 1;
        self.lent += 1;
        self.at += header.tp_next_offset as usize;
        self.left -= 1;
        if self.left == 0 {
            self.let_go(block);
            self.block = (block + 1) % self.shape.blocks;
        }
        let start = at + usize::from(header.tp_mac);
        let note = FrameNote {
            status: header.tp_status,
            whole_bytes: header.tp_len,
            tag: header.hv1.tp_vlan_tci,
            // SAFETY: the kernel has written it in front of the frame.
            virtio: unsafe { self.mapped.read(start - VIRTIO_BYTES) },
        };
        // SAFETY: the kernel has handed the block over, its frames do not overlap, and each is read
        // once.
        Some((unsafe { self.mapped.frame(start, header.tp_snaplen, block as u32) }, note))
    }

    /// Opens the next block, if both the kernel and we have finished with it.
    fn open_block(&mut self) -> Option<()> {
        let base = self.block * self.shape.block_bytes;
        let status = self.mapped.word(base + STATUS).load(Ordering::Acquire);
        if status & libc::TP_STATUS_USER == 0 || self.held[self.block] > 0 {
            return None;
        }
        self.left = self.mapped.word(base + COUNT).load(Ordering::Relaxed);
        self.at = base + self.mapped.word(base + FIRST).load(Ordering::Relaxed) as usize;
        if self.left == 0 {
            self.mapped.word(base + STATUS).store(libc::TP_STATUS_KERNEL, Ordering::Release);
            self.block = (self.block + 1) % self.shape.blocks;
        } else {
            self.held[self.block] = 1;
        }
        Some(())
    }

    fn let_go(&mut self, block: usize) {
        self.held[block] -= 1;
        if self.held[block] == 0 {
            let status = self.mapped.word(block * self.shape.block_bytes + STATUS);
            status.store(libc::TP_STATUS_KERNEL, Ordering::Release);
        }
    }

    /// Takes a frame back; its block goes back to the kernel with the last one.
    pub fn give_back(&mut self, frame: &Frame) {
        self.lent -= 1;
        self.let_go(frame.tag() as usize);
    }

    /// Returns how many frames of the smallest size it can hold, and how many are lent.
    pub fn census(&self) -> (usize, usize) {
        (self.shape.bytes() / 64, self.lent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ring_holds_what_was_asked_for_but_stays_in_the_caches() {
        assert!(BlockLayout::new(4096, 1518, None, 1).frames(1518) >= 4096);
        let jumbo = BlockLayout::new(4096, 9018, None, 1);
        assert_eq!((jumbo.bytes(), jumbo.frames(9018)), (8 << 20, 32 * 28));
        assert_eq!(BlockLayout::new(4096, 9018, Some(1 << 26), 1).blocks, 4);
        assert_eq!(BlockLayout::new(1, 60, None, 1).blocks, 4);
    }
}
