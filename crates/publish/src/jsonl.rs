//! Messages to a file, each a line (JSON Lines).

use crate::DropCause;
use crate::outlet::{Outcomes, Outlet, OutletError};
use millstream_flow::blocks::{FileSink, name_whole};
use std::fs::{self, File, TryLockError};
use std::io::{self, Seek, SeekFrom, Write};
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Bytes of one write.
const OUT_BYTES: usize = 256 << 10;

/// A file of JSON Lines, called `NAME.part` until it is complete.
///
/// A message counts as acknowledged when the kernel has it. After an error the file ends with the
/// last complete line, and the outlet tries again.
pub struct JsonlOutlet {
    path: PathBuf,
    file: Option<File>,
    /// The bytes of the file's complete lines.
    bytes: u64,
    out: Vec<u8>,
    messages: u64,
}

impl JsonlOutlet {
    /// Creates the outlet; the file is created when the graph starts.
    #[must_use]
    pub fn new(path: &Path) -> Self {
        let out = Vec::with_capacity(OUT_BYTES);
        Self { path: path.to_owned(), file: None, bytes: 0, out, messages: 0 }
    }

    fn cannot(&self, error: &io::Error) -> OutletError {
        let hint = match error.kind() {
            io::ErrorKind::StorageFull => "; free some space, or write elsewhere",
            io::ErrorKind::NotFound => "; make its folder first",
            io::ErrorKind::ResourceBusy => {
                "; this graph or another program writes it: write elsewhere"
            }
            _ => "",
        };
        OutletError(format!("cannot write {}: {error}{hint}", self.path.display()))
    }

    fn create(&self) -> io::Result<File> {
        if fs::metadata(&self.path).is_ok_and(|data| !data.is_file()) {
            return Err(io::Error::other("it is no regular file, which lines need"));
        }
        let part = FileSink::<u8>::part_of(&self.path);
        // Not truncated before the lock is held: another block may be using the file.
        let file = File::options().write(true).create(true).truncate(false).open(part)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(io::ErrorKind::ResourceBusy.into()),
            Err(TryLockError::Error(error)) => return Err(error),
        }
        file.set_len(0)?;
        Ok(file)
    }

    fn write(&mut self) -> io::Result<()> {
        let Some(file) = &mut self.file else { return Ok(()) };
        let written = file.write_all(&self.out);
        if written.is_err() {
            // A part of a line may be there. If it cannot be removed now, the next try does it.
            file.set_len(self.bytes)?;
            file.seek(SeekFrom::Start(self.bytes))?;
        }
        written
    }

    fn finish_file(&mut self) -> io::Result<()> {
        let Some(file) = self.file.take() else { return Ok(()) };
        let part = FileSink::<u8>::part_of(&self.path);
        if self.bytes == 0 {
            return fs::remove_file(part);
        }
        name_whole(&file, &part, &self.path)
    }
}

impl Outlet for JsonlOutlet {
    fn name(&self) -> String {
        format!("file {}", self.path.display())
    }

    fn away_cause(&self) -> DropCause {
        DropCause::FileError
    }

    fn check(&mut self) -> Result<(), OutletError> {
        let created = self.create().map_err(|error| self.cannot(&error))?;
        self.file = Some(created);
        Ok(())
    }

    fn open(&mut self) -> Result<(), OutletError> {
        self.messages = 0;
        self.out.clear();
        if self.file.is_none() {
            return self.check();
        }
        let bytes = self.bytes;
        let place = |file: &mut File| {
            file.set_len(bytes)?;
            file.seek(SeekFrom::Start(bytes))
        };
        let placed = self.file.as_mut().map(place);
        placed.transpose().map(drop).map_err(|error| self.cannot(&error))
    }

    fn push(&mut self, message: &[u8]) -> bool {
        if !self.out.is_empty() && self.out.len() + message.len() + 1 > OUT_BYTES {
            return false;
        }
        self.out.extend_from_slice(message);
        self.out.push(b'\n');
        self.messages += 1;
        true
    }

    fn exchange(&mut self, _: Instant) -> Result<Outcomes, OutletError> {
        self.write().map_err(|error| self.cannot(&error))?;
        self.bytes += self.out.len() as u64;
        self.out.clear();
        Ok(Outcomes { acknowledged: std::mem::take(&mut self.messages), refused: 0 })
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    fn close(&mut self) -> Result<(), OutletError> {
        self.finish_file().map_err(|error| self.cannot(&error))
    }
}
