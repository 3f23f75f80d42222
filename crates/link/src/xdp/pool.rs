//! The chunks of the frame memory, and who may have how many.
//!
//! Chunks to receive into and chunks to transmit from come out of one pool, because a received
//! frame may be transmitted. So that neither side starves the other, the transmit side may have
//! `transmit` of them out, and as many as it does not have are kept for it.
//!
//! Each side has its own free chunks as long as it can: what one has received into was written by
//! another processor, and its lines would have to be fetched from there to be transmitted from.

use crate::frame::{Frame, FrameMemory};

/// How the memory is cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Geometry {
    /// Bytes of a chunk, a multiple of 64.
    pub chunk: u32,
    /// Chunks need not be powers of two; addresses then carry their offset apart.
    pub unaligned: bool,
}

/// Bytes that the kernel leaves free before a received frame (`XDP_PACKET_HEADROOM`).
pub const HEADROOM: u32 = 256;

/// Where a descriptor's address keeps its offset (`XSK_UNALIGNED_BUF_OFFSET_SHIFT`).
const OFFSET_SHIFT: u32 = 48;
const ADDRESS_MASK: u64 = (1 << OFFSET_SHIFT) - 1;

impl Geometry {
    /// Bytes of a received frame that fit into one chunk.
    pub fn part_bytes(self) -> u32 {
        self.chunk - HEADROOM
    }

    /// The chunk that a descriptor's address lies in.
    #[inline]
    fn chunk_of(self, address: u64) -> Chunk {
        let mask = if self.unaligned { ADDRESS_MASK } else { !u64::from(self.chunk - 1) };
        Chunk(((address & mask) >> 6) as u32)
    }

    /// A descriptor's address for the byte at offset `at` of the memory, in `chunk`.
    #[inline]
    fn address(self, chunk: Chunk, at: u64) -> u64 {
        match self.unaligned {
            true => chunk.base() | (at - chunk.base()) << OFFSET_SHIFT,
            false => at,
        }
    }
}

/// A chunk by its first byte, in units of 64 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Chunk(u32);

impl Chunk {
    /// The offset of its first byte.
    #[inline]
    pub fn base(self) -> u64 {
        u64::from(self.0) << 6
    }
}

/// In a frame's tag: it came from `reserve`. The other bits are the chunk.
const RESERVED: u32 = 1 << 31;

/// Bytes of a frame's metadata, in front of it (`struct xsk_tx_metadata`, Linux 6.8; the last
/// member came with 6.15).
pub const METADATA_BYTES: u32 = 24;

/// Kept free in front of frames to transmit where they may have metadata: a line of the cache.
const LEAD_BYTES: u32 = 64;

/// `XDP_TXMD_FLAGS_CHECKSUM`.
const METADATA_CHECKSUM: u64 = 1 << 1;

/// The sides' places among the free chunks.
const RECEIVE: usize = 0;
const TRANSMIT: usize = 1;

/// The free chunks, and the count of the others.
#[derive(Debug)]
pub struct FramePool {
    geometry: Geometry,
    /// To be received into, and to be transmitted from. Those used last are taken first: they are
    /// in the caches.
    free: [Vec<Chunk>; 2],
    /// Frames can have metadata.
    metadata: bool,
    /// Chunks that the transmit side may have out.
    transmit: usize,
    /// Lent by `reserve`.
    reserved: usize,
    /// Lent by `receive`.
    received: usize,
    /// With the kernel, to transmit.
    transmitting: usize,
}

impl FramePool {
    /// A pool of `count` chunks, of which `transmit` are for the transmit side.
    pub fn new(geometry: Geometry, count: usize, transmit: usize) -> Self {
        let step = geometry.chunk >> 6;
        let mut free = [Vec::with_capacity(count), Vec::with_capacity(count)];
        // Reversed, so that the first chunks are taken first.
        for index in (0..count).rev() {
            free[usize::from(index >= count.saturating_sub(transmit))]
                .push(Chunk(index as u32 * step));
        }
        Self {
            geometry,
            free,
            metadata: false,
            transmit,
            reserved: 0,
            received: 0,
            transmitting: 0,
        }
    }

    /// Keeps room for metadata in front of frames to transmit.
    pub fn allow_metadata(&mut self) {
        self.metadata = true;
    }

    /// Whether frames can have metadata.
    pub fn allows_metadata(&self) -> bool {
        self.metadata
    }

    /// Chunks that are free.
    pub fn free(&self) -> usize {
        self.free.iter().map(Vec::len).sum()
    }

    /// Takes a free chunk for one of the sides, the other's if it has none.
    #[inline]
    fn pop(&mut self, side: usize) -> Option<Chunk> {
        self.free[side].pop().or_else(|| self.free[1 - side].pop())
    }

    /// Frees a chunk, for the side that lacks one.
    #[inline]
    fn push(&mut self, chunk: Chunk) {
        let side =
            if self.free[TRANSMIT].len() < self.kept_for_transmit() { TRANSMIT } else { RECEIVE };
        self.free[side].push(chunk);
    }

    /// Chunks that are lent to the user.
    pub fn lent(&self) -> usize {
        self.reserved + self.received
    }

    /// Chunks that are with the kernel to be transmitted.
    pub fn transmitting(&self) -> usize {
        self.transmitting
    }

    fn kept_for_transmit(&self) -> usize {
        self.transmit.saturating_sub(self.reserved + self.transmitting)
    }

    /// Chunks that may go to the kernel to receive into.
    #[inline]
    pub fn to_receive(&self) -> usize {
        self.free().saturating_sub(self.kept_for_transmit())
    }

    /// Takes a free chunk to receive into.
    #[inline]
    pub fn take(&mut self) -> Option<Chunk> {
        self.pop(RECEIVE)
    }

    /// A received frame, lent to the user.
    ///
    /// # Safety
    /// The kernel has just handed this descriptor over: the chunk is ours, and no frame covers it.
    #[inline]
    pub unsafe fn lend(&mut self, memory: &FrameMemory, address: u64, length: u32) -> Frame {
        let chunk = self.geometry.chunk_of(address);
        let at = (address & ADDRESS_MASK) + (address >> OFFSET_SHIFT);
        let room = self.geometry.chunk - (at - chunk.base()) as u32;
        self.received += 1;
        // SAFETY: the caller's promise.
        unsafe { Frame::new(memory, at, length, room, chunk.0) }
    }

    /// Undoes the last `count` of [`FramePool::lend`], whose descriptors stay in the ring for
    /// later.
    pub fn unlend(&mut self, frames: &mut Vec<Frame>, count: usize) {
        frames.truncate(frames.len() - count);
        self.received -= count;
    }

    /// Lends up to `count` free buffers; how many.
    pub fn reserve(
        &mut self,
        memory: &FrameMemory,
        frames: &mut Vec<Frame>,
        count: usize,
    ) -> usize {
        let count = count.min(self.kept_for_transmit()).min(self.free());
        for _ in 0..count {
            let Some(chunk) = self.pop(TRANSMIT) else { break };
            let lead = if self.metadata { LEAD_BYTES } else { 0 };
            let (at, room) = (chunk.base() + u64::from(lead), self.geometry.chunk - lead);
            // SAFETY: the chunk was free: neither the kernel nor a frame has it.
            let frame = unsafe { Frame::new(memory, at, 0, room, chunk.0 | RESERVED) };
            frames.push(frame);
        }
        self.reserved += count;
        count
    }

    /// Whether the transmit side has taken all that it may, so that waiting completions matter.
    pub fn transmit_short(&self, count: usize) -> bool {
        self.kept_for_transmit().min(self.free()) < count
    }

    /// Takes a frame back from the user.
    #[inline]
    pub fn put(&mut self, memory: &FrameMemory, frame: Frame) {
        let chunk = self.returned(memory, &frame);
        self.push(chunk);
    }

    /// A frame goes to the kernel: the address for its descriptor.
    #[inline]
    pub fn transmit(&mut self, memory: &FrameMemory, frame: Frame) -> u64 {
        let chunk = self.returned(memory, &frame);
        self.transmitting += 1;
        self.geometry.address(chunk, frame.at())
    }

    /// Writes down what the kernel is to do with a frame; whether there is anything.
    #[inline]
    pub fn describe(&self, memory: &FrameMemory, frame: &mut Frame) -> bool {
        // The kernel tries what it cannot do again and again: it must not get to see that.
        let within = |&(start, place): &(u8, u8)| {
            usize::from(start) + usize::from(place) + 2 <= frame.len() && self.metadata
        };
        let Some((start, place)) = frame.checksum_at().filter(within) else { return false };
        // SAFETY: a frame to transmit has a lead in its chunk, a received one a headroom.
        let metadata = unsafe { memory.in_front(frame, METADATA_BYTES) };
        metadata.fill(0);
        metadata[..8].copy_from_slice(&METADATA_CHECKSUM.to_ne_bytes());
        metadata[8..10].copy_from_slice(&u16::from(start).to_ne_bytes());
        metadata[10..12].copy_from_slice(&u16::from(place).to_ne_bytes());
        true
    }

    #[inline]
    fn returned(&mut self, memory: &FrameMemory, frame: &Frame) -> Chunk {
        assert!(memory.owns(frame), "a frame of another link");
        let tag = frame.tag();
        let lender = if tag & RESERVED != 0 { &mut self.reserved } else { &mut self.received };
        *lender -= 1;
        Chunk(tag & !RESERVED)
    }

    /// The kernel has transmitted what lies at `address`.
    #[inline]
    pub fn complete(&mut self, address: u64) {
        self.transmitting -= 1;
        self.push(self.geometry.chunk_of(address));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::mm::MapFlags;

    fn pool(chunk: u32, unaligned: bool) -> (FrameMemory, FramePool) {
        let memory = FrameMemory::anonymous(8 * 4096, MapFlags::empty()).unwrap();
        (memory, FramePool::new(Geometry { chunk, unaligned }, 8, 3))
    }

    #[test]
    fn addresses_of_either_mode_lead_back_to_their_chunk() {
        for (chunk, unaligned) in [(2048, false), (4096, false), (3008, true), (4096, true)] {
            let (memory, mut pool) = pool(chunk, unaligned);
            let first = pool.take().unwrap();
            let second = pool.take().unwrap();
            assert_eq!((first.base(), second.base()), (0, u64::from(chunk)));
            // What the kernel would say of a frame that it put behind the headroom.
            let headroom = u64::from(HEADROOM);
            let address = match unaligned {
                true => second.base() | headroom << 48,
                false => second.base() + headroom,
            };
            // SAFETY: nobody else uses this memory.
            let frame = unsafe { pool.lend(&memory, address, 60) };
            assert_eq!(frame.at(), u64::from(chunk) + headroom);
            assert_eq!(frame.room(), (chunk - HEADROOM) as usize);
            let sent = pool.transmit(&memory, frame);
            assert_eq!(sent, address, "chunk {chunk}, unaligned {unaligned}");
            pool.complete(sent);
            assert_eq!(pool.take(), Some(second));
        }
    }

    #[test]
    fn neither_side_takes_what_is_the_others() {
        let (memory, mut pool) = pool(4096, false);
        assert_eq!(pool.to_receive(), 5);
        let mut frames = Vec::new();
        assert_eq!(pool.reserve(&memory, &mut frames, 99), 3);
        assert_eq!((pool.to_receive(), pool.reserve(&memory, &mut frames, 1)), (5, 0));
        assert!(pool.transmit_short(1));
        let sent = pool.transmit(&memory, frames.pop().unwrap());
        assert_eq!((pool.to_receive(), pool.lent(), pool.transmitting()), (5, 2, 1));
        frames.drain(..).for_each(|frame| pool.put(&memory, frame));
        pool.complete(sent);
        assert_eq!((pool.to_receive(), pool.free()), (5, 8));
    }

    #[test]
    fn a_chunk_goes_back_to_the_side_that_used_it() {
        let (memory, mut pool) = pool(4096, false);
        let received = pool.take().unwrap();
        // SAFETY: nobody else uses this memory.
        let frame = unsafe { pool.lend(&memory, received.base() + 256, 60) };
        let mut frames = Vec::new();
        assert_eq!(pool.reserve(&memory, &mut frames, 2), 2);
        let unused = frames.pop().unwrap();
        let (sent, kept) = (frames.pop().unwrap(), unused.at());
        let at = pool.transmit(&memory, sent);
        pool.put(&memory, frame);
        pool.put(&memory, unused);
        assert_eq!(pool.take(), Some(received), "given back last of those received");
        assert_eq!(pool.reserve(&memory, &mut frames, 1), 1);
        assert_eq!(frames[0].at(), kept, "given back last of those to transmit");
        pool.complete(at);
        assert_eq!((pool.free[RECEIVE].len(), pool.free[TRANSMIT].len()), (4, 2));
    }

    #[test]
    fn forwarded_frames_count_for_the_transmit_side() {
        let (memory, mut pool) = pool(4096, false);
        let chunk = pool.take().unwrap();
        // SAFETY: nobody else uses this memory.
        let frame = unsafe { pool.lend(&memory, chunk.base() + 256, 60) };
        assert_eq!(pool.lent(), 1);
        let sent = pool.transmit(&memory, frame);
        assert_eq!((pool.lent(), pool.transmitting(), pool.to_receive()), (0, 1, 5));
        pool.complete(sent);
        assert_eq!(pool.free(), 8);
    }
}
