//! Writing around the page cache (open(2), `O_DIRECT`).

use rustix::fs::OFlags;
use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

/// What memory, offsets and lengths are multiples of: no disk wants more.
pub const BLOCK_BYTES: usize = 4096;

/// What a call waits for while more is to come: a fast disk takes longer for it than a call costs.
pub const WRITE_BYTES_MIN: usize = 64 << 10;

/// The most that one call writes, so that its memory is free again soon.
const WRITE_BYTES_MAX: usize = 4 << 20;

/// A file written in whole blocks, past the page cache.
#[derive(Debug)]
pub struct DirectWriter {
    file: File,
    /// Where the next block goes.
    pub offset: u64,
}

impl DirectWriter {
    /// None where the file system cannot do it.
    pub fn open(path: &Path) -> Option<Self> {
        let flags = i32::try_from(OFlags::DIRECT.bits()).ok()?;
        let file = File::options().write(true).custom_flags(flags).open(path).ok()?;
        Some(Self { file, offset: 0 })
    }

    /// Writes whole blocks of `bytes` and returns how much that was: nothing when there is none, or
    /// when it does not lie as the disk wants it.
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let length = bytes.len().min(WRITE_BYTES_MAX) / BLOCK_BYTES * BLOCK_BYTES;
        if !bytes.as_ptr().addr().is_multiple_of(BLOCK_BYTES) {
            return Ok(0);
        }
        match self.file.write_all_at(&bytes[..length], self.offset) {
            Ok(()) => self.offset += length as u64,
            // Nothing was written: it goes the usual way.
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => return Ok(0),
            Err(error) => return Err(error),
        }
        Ok(length)
    }
}
