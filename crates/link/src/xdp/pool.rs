//! The chunks of the frame memory, and their division between receiving and transmitting.
//!
//! Receive and transmit chunks come from one pool, because a received frame may be transmitted. So
//! that neither side starves the other, the transmit side may have `transmit` chunks in use, and
//! the unused ones of these are reserved for it.
//!
//! Each side reuses its own free chunks as far as possible: another processor wrote the chunks
//! received into, and their cache lines would have to be fetched from there for transmission.

use crate::frame::{Frame, FrameMemory};

/// The division of the memory into chunks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Geometry {
    /// The size of a chunk, bytes, a multiple of 64.
    pub chunk: u32,
    /// Chunks need not be powers of two; addresses then have a separate offset.
    pub unaligned: bool,
}

/// Bytes that the kernel leaves free before a received frame (`XDP_PACKET_HEADROOM`).
pub const HEADROOM: u32 = 256;

/// The position of the offset in a descriptor's address (`XSK_UNALIGNED_BUF_OFFSET_SHIFT`).
const OFFSET_SHIFT: u32 = 48;
const ADDRESS_MASK: u64 = (1 << OFFSET_SHIFT) - 1;

impl Geometry {
    /// Returns the bytes of a received frame that fit into one chunk.
    pub fn part_bytes(self) -> u32 {
        self.chunk - HEADROOM
    }

    /// Returns the chunk that contains a descriptor's address.
    #[inline]
    fn chunk_of(self, address: u64) -> Chunk {
        let mask = if self.unaligned { ADDRESS_MASK } else { !u64::from(self.chunk - 1) };
        Chunk(((address & mask) >> 6) as u32)
    }

    /// Returns a descriptor's address for the byte at offset `at` of the memory, in `chunk`.
    #[inline]
    fn address(self, chunk: Chunk, at: u64) -> u64 {
        match self.unaligned {
            true => chunk.base() | (at - chunk.base()) << OFFSET_SHIFT,
            false => at,
        }
    }
}

/// A chunk, identified by its first byte in units of 64 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Chunk(u32);

impl Chunk {
    /// Returns the offset of its first byte.
    #[inline]
    pub fn base(self) -> u64 {
        u64::from(self.0) << 6
    }
}

/// The bit in a frame's tag that marks it as from `reserve`. The other bits are the chunk.
const RESERVED: u32 = 1 << 31;

/// The size of a frame's metadata, in front of it (`struct xsk_tx_metadata`, Linux 6.8; the last
/// member came with 6.15).
pub const METADATA_BYTES: u32 = 24;

/// The free space in front of frames to transmit where they may have metadata: a cache line.
const LEAD_BYTES: u32 = 64;

/// `XDP_TXMD_FLAGS_CHECKSUM`.
const METADATA_CHECKSUM: u64 = 1 << 1;

/// The index of the receive side among the free chunks.
const RECEIVE: usize = 0;
const TRANSMIT: usize = 1;

/// The free chunks, and the counts of the others.
#[derive(Debug)]
pub struct FramePool {
    geometry: Geometry,
    /// The free chunks of the receive and transmit sides. Those used last are taken first, because
    /// they are in the caches.
    free: [Vec<Chunk>; 2],
    /// Whether frames can have metadata.
    metadata: bool,
    /// The most chunks that the transmit side may have in use.
    transmit: usize,
    /// Chunks lent by `reserve`.
    reserved: usize,
    /// Chunks lent by `receive`.
    received: usize,
    /// Chunks with the kernel, to transmit.
    transmitting: usize,
}

impl FramePool {
    /// Creates a pool of `count` chunks, of which `transmit` are for the transmit side.
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

    /// Reserves room for metadata in front of frames to transmit.
    pub fn allow_metadata(&mut self) {
        self.metadata = true;
    }

    /// Whether frames can have metadata.
    pub fn allows_metadata(&self) -> bool {
        self.metadata
    }

    /// Returns the number of free chunks.
    pub fn free(&self) -> usize {
        self.free.iter().map(Vec::len).sum()
    }

    /// Takes a free chunk for one side, or the other side's if it has none.
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

    /// Returns the number of chunks lent to the user.
    pub fn lent(&self) -> usize {
        self.reserved + self.received
    }

    /// Returns the number of chunks with the kernel to be transmitted.
    pub fn transmitting(&self) -> usize {
        self.transmitting
    }

    fn kept_for_transmit(&self) -> usize {
        self.transmit.saturating_sub(self.reserved + self.transmitting)
    }

    /// Returns how many chunks may go to the kernel to receive into.
    #[inline]
    pub fn to_receive(&self) -> usize {
        self.free().saturating_sub(self.kept_for_transmit())
    }

    /// Takes a free chunk to receive into.
    #[inline]
    pub fn take(&mut self) -> Option<Chunk> {
        self.pop(RECEIVE)
    }

    /// Lends a received frame to the user.
    ///
    /// # Safety
    /// The kernel has just handed this descriptor over: the chunk is ours, and no frame covers it.
    #[inline]
    pub unsafe fn lend(&mut self, memory: &FrameMemory, address: u64, length: u32) -> Frame {
        let chunk = self.geometry.chunk_of(address);
        let at = (address & ADDRESS_MASK) + (address >> OFFSET_SHIFT);
        let room = self.geometry.chunk - (at - chunk.base()) as u32;
        self.received += 1;
        // SAFETY: the caller promises it.
        unsafe { Frame::new(memory, at, length, room, chunk.0) }
    }

    /// Undoes the last `count` of [`FramePool::lend`], whose descriptors stay in the ring for
    /// later.
    pub fn unlend(&mut self, frames: &mut Vec<Frame>, count: usize) {
        frames.truncate(frames.len() - count);
        self.received -= count;
    }

    /// Lends up to `count` free buffers; returns their number.
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

    /// Whether the transmit side has used its whole share, so that waiting completions matter.
    pub fn transmit_short(&self, count: usize) -> bool {
        self.kept_for_transmit().min(self.free()) < count
    }

    /// Takes a frame back from the user.
    #[inline]
    pub fn put(&mut self, memory: &FrameMemory, frame: Frame) {
        let chunk = self.returned(memory, &frame);
        self.push(chunk);
    }

    /// Passes a frame to the kernel; returns the address for its descriptor.
    #[inline]
    pub fn transmit(&mut self, memory: &FrameMemory, frame: Frame) -> u64 {
        let chunk = self.returned(memory, &frame);
        self.transmitting += 1;
        self.geometry.address(chunk, frame.at())
    }

    /// Writes the metadata with the kernel's tasks for a frame; returns whether there are any.
    #[inline]
    pub fn describe(&self, memory: &FrameMemory, frame: &mut Frame) -> bool {
        // The kernel repeats an impossible request for ever, so it must not get one.
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

    /// Processes the kernel's completion of the transmission at `address`.
    #[inline]
    pub fn complete(&mut self, address: u64) {
        self.transmitting -= 1;
        self.push(self.geometry.chunk_of(address));
    }
}

#[cfg(test)]
#[path = "pool_cost.rs"]
mod pool_cost;

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
            // The kernel's descriptor of a frame that it put behind the headroom.
            let headroom = u64::from(HEADROOM);
            let address = match unaligned {
                true => second.base() | headroom << 48,
                false => second.base() + headroom,
            };
            // SAFETY: nothing else uses this memory.
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
        // SAFETY: nothing else uses this memory.
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
        // SAFETY: nothing else uses this memory.
        let frame = unsafe { pool.lend(&memory, chunk.base() + 256, 60) };
        assert_eq!(pool.lent(), 1);
        let sent = pool.transmit(&memory, frame);
        assert_eq!((pool.lent(), pool.transmitting(), pool.to_receive()), (0, 1, 5));
        pool.complete(sent);
        assert_eq!(pool.free(), 8);
    }
}
