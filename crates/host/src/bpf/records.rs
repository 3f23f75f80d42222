//! Records that programs write and this process reads, in order (`Documentation/bpf/ringbuf.rst`).

use std::io;
use std::os::fd::BorrowedFd;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use rustix::mm::ProtFlags;
use rustix::param::page_size;

use crate::mapping::Mapping;

/// A program still writes the record (BPF_RINGBUF_BUSY_BIT).
const BUSY: u32 = 1 << 31;
/// The program gave it up (BPF_RINGBUF_DISCARD_BIT).
const DISCARDED: u32 = 1 << 30;
/// The length and the page of a record precede it (BPF_RINGBUF_HDR_SZ).
const HEADER_BYTES: usize = 8;

/// The reading end of a map of records ([`super::MapKind::Records`]). One process has one.
#[derive(Debug)]
pub struct RecordRing {
    /// One page: how far we have read.
    ours: Mapping,
    /// One page: how far programs have written; then the records, twice in a row, so that each lies
    /// in one piece.
    theirs: Mapping,
    bytes: usize,
}

impl RecordRing {
    /// Maps the records of `map`, which has `bytes` of them.
    ///
    /// # Errors
    /// The error of mmap(2).
    pub fn new(map: BorrowedFd<'_>, bytes: u32) -> io::Result<Self> {
        let (page, bytes) = (page_size(), bytes as usize);
        let ours = Mapping::new(map, 0, page, ProtFlags::READ | ProtFlags::WRITE)?;
        let theirs = Mapping::new(map, page as u64, page + 2 * bytes, ProtFlags::READ)?;
        Ok(Self { ours, theirs, bytes })
    }

    /// Passes every complete record to `take`, the oldest first, and makes room for others.
    pub fn read(&mut self, mut take: impl FnMut(&[u8])) {
        let (ours, theirs) = (self.ours.at::<AtomicU64>(0, 1), self.theirs.at::<AtomicU64>(0, 1));
        // SAFETY: aligned words that stay mapped as long as `self`; the kernel accesses them as
        // atomics, too.
        let (ours, theirs) = unsafe { (ours.as_ref(), theirs.as_ref()) };
        let mut position = ours.load(Ordering::Relaxed);
        // Not beyond what is there now: programs may write as fast as we read.
        let end = theirs.load(Ordering::Acquire);
        while position < end {
            let at = (page_size() + (position as usize & (self.bytes - 1))) as u64;
            // SAFETY: as above: a record begins with a word at a multiple of 8 bytes.
            let header = unsafe { self.theirs.at::<AtomicU32>(at, 1).as_ref() };
            let header = header.load(Ordering::Acquire);
            let length = (header & !(BUSY | DISCARDED)) as usize;
            if header & BUSY != 0 || length > self.bytes {
                break;
            }
            if header & DISCARDED == 0 {
                let record: NonNull<u8> = self.theirs.at(at + HEADER_BYTES as u64, length);
                // SAFETY: within the mapping (`at`); the program is done with it, and the kernel
                // writes there again only when our position is behind it.
                take(unsafe { std::slice::from_raw_parts(record.as_ptr(), length) });
            }
            position += (HEADER_BYTES + length).next_multiple_of(8) as u64;
            ours.store(position, Ordering::Release);
        }
    }
}
