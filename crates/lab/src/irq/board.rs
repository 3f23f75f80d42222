//! The memory that device and host share: registers and a ring of blocks. Every field is a 64-bit
//! word in the machine's byte order; the writer of a block stores its number last.

use std::io;
use std::ops::Deref;
use std::os::fd::AsFd;
use std::ptr::NonNull;
use std::sync::atomic::AtomicU64;

use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

/// Blocks in the ring.
pub const BLOCKS: usize = 64;
/// Samples of a block.
pub const SAMPLES: usize = 64;

/// States of [`BoardRegisters::command`].
pub mod command {
    /// Answers clock queries.
    pub const CALIBRATE: u64 = 0;
    /// Converts.
    pub const CONVERT: u64 = 1;
    /// Ends.
    pub const END: u64 = 2;
}

/// The layout of the shared memory.
#[derive(Debug)]
#[repr(C)]
pub struct BoardRegisters {
    /// See [`command`]; the host writes it.
    pub command: AtomicU64,
    /// Interrupts a block, 1 or 2; the host writes it.
    pub interrupts: AtomicU64,
    /// From conversion to conversion, nanoseconds; the host writes it.
    pub period_ns: AtomicU64,
    /// Conversions; the host writes it.
    pub count: AtomicU64,
    /// Number of a clock query; the host writes it.
    pub question: AtomicU64,
    /// The clock at the query, ticks; the device writes it.
    pub answer_ticks: AtomicU64,
    /// Number of the answered query; the device writes it after the answer.
    pub answered: AtomicU64,
    /// Transfers that the driver has started, two interrupts a block only; the host writes it.
    pub transfers: AtomicU64,
    /// Blocks that the user has read; the host writes it.
    pub consumed: AtomicU64,
    /// Blocks without room or without a driver in time; the device writes it.
    pub overruns: AtomicU64,
    /// 1 when all conversions are done; the device writes it.
    pub finished: AtomicU64,
    /// The ring.
    pub blocks: [SampleBlock; BLOCKS],
}

/// A block of samples.
#[derive(Debug)]
#[repr(C)]
pub struct SampleBlock {
    /// Number of the block, from 1; written last.
    pub number: AtomicU64,
    /// The clock latched at the edge, ticks.
    pub edge_ticks: AtomicU64,
    /// The clock before the interrupt of a conversion, ticks; 0 with one interrupt a block.
    pub converted_ticks: AtomicU64,
    /// The clock before the interrupt of a transfer, ticks.
    pub raised_ticks: AtomicU64,
    /// The host's clock at the edge, nanoseconds; only an imitation knows it.
    pub truth_ns: AtomicU64,
    /// Samples: each holds its position in the stream.
    pub samples: [AtomicU64; SAMPLES],
}

/// The mapped memory.
#[derive(Debug)]
pub struct SharedBoard(NonNull<BoardRegisters>);

// SAFETY: every field that it points to is atomic.
unsafe impl Send for SharedBoard {}
// SAFETY: as above.
unsafe impl Sync for SharedBoard {}

impl SharedBoard {
    /// Bytes of the memory.
    pub const BYTES: usize = size_of::<BoardRegisters>();

    /// Maps a file, or a device's memory, that has at least [`SharedBoard::BYTES`].
    ///
    /// # Errors
    /// The kernel's, or that it is too small.
    pub fn map(file: impl AsFd) -> io::Result<Self> {
        let size = rustix::fs::fstat(&file)?.st_size;
        if size >= 0 && (size as usize) < Self::BYTES {
            let what = format!("shared memory of {} bytes is needed, not {size}", Self::BYTES);
            return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
        }
        Self::map_at(file, 0)
    }

    /// Maps memory of a device, which begins at `offset` in `file` and is large enough.
    ///
    /// # Errors
    /// The kernel's.
    pub(super) fn map_at(file: impl AsFd, offset: u64) -> io::Result<Self> {
        let (protection, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED);
        // SAFETY: a new mapping; pages are aligned for words.
        let start =
            unsafe { mmap(std::ptr::null_mut(), Self::BYTES, protection, flags, file, offset)? };
        NonNull::new(start.cast()).map(Self).ok_or_else(|| io::ErrorKind::OutOfMemory.into())
    }

    /// The block with this number.
    #[must_use]
    pub fn block(&self, number: u64) -> &SampleBlock {
        &self.blocks[number as usize % BLOCKS]
    }
}

impl Deref for SharedBoard {
    type Target = BoardRegisters;

    fn deref(&self) -> &BoardRegisters {
        // SAFETY: mapped as long as `self` is; any bits are values of atomic words.
        unsafe { self.0.as_ref() }
    }
}

impl Drop for SharedBoard {
    fn drop(&mut self) {
        // SAFETY: it was mapped with this size, and nothing borrows from it any more.
        let _ = unsafe { munmap(self.0.as_ptr().cast(), Self::BYTES) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::Ordering;

    #[test]
    fn two_mappings_see_the_same_and_too_little_memory_is_refused() {
        let file = tempfile::tempfile().unwrap();
        let error = SharedBoard::map(&file).unwrap_err().to_string();
        assert!(error.contains("bytes is needed, not 0"), "{error}");
        file.set_len(SharedBoard::BYTES as u64).unwrap();
        let (one, other) = (SharedBoard::map(&file).unwrap(), SharedBoard::map(&file).unwrap());
        one.block(BLOCKS as u64 + 3).edge_ticks.store(7, Ordering::Release);
        assert_eq!(other.blocks[3].edge_ticks.load(Ordering::Acquire), 7);
    }
}
