//! Writing past the page cache (open(2), `O_DIRECT`).

use rustix::fs::OFlags;
use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

/// The alignment of memory, offsets and lengths: no disk needs more.
pub const BLOCK_BYTES: usize = 4096;

/// The least that a call writes while more is to come: a fast disk takes longer for it than a call
/// costs.
pub const WRITE_BYTES_MIN: usize = 64 << 10;

/// The most that one call writes, so that its memory is free again soon.
const WRITE_BYTES_MAX: usize = 4 << 20;

/// A file written in whole blocks, past the page cache.
#[derive(Debug)]
pub struct DirectWriter {
    file: File,
    /// The offset of the next block.
    pub offset: u64,
}

impl DirectWriter {
    /// Opens the file; `None` where the file system has no direct writes.
    pub fn open(path: &Path) -> Option<Self> {
        let flags = i32::try_from(OFlags::DIRECT.bits()).ok()?;
        let file = File::options().write(true).custom_flags(flags).open(path).ok()?;
        Some(Self { file, offset: 0 })
    }

    /// Writes whole blocks of `bytes` and returns how many bytes that were: 0 for less than a
    /// block, or for memory that is not aligned as the disk needs it.
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let length = bytes.len().min(WRITE_BYTES_MAX) / BLOCK_BYTES * BLOCK_BYTES;
        if bytes.as_ptr().addr() % BLOCK_BYTES != 0 {
            return Ok(0);
        }
        match self.file.write_all_at(&bytes[..length], self.offset) {
            Ok(()) => self.offset += length as u64,
            // Nothing was written: the bytes go through the page cache.
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => return Ok(0),
            Err(error) => return Err(error),
        }
        Ok(length)
    }
}
