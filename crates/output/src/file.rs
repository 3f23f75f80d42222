//! A file that is being written.

use crate::part::{self, inherit, is_named, rename_new};
use crate::place::{Place, duplicate, follow, regular};
use crate::step::name_by;
use crate::{Existing, OutputError};
use rustix::event::{PollFd, PollFlags, poll};
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// A file that a program writes; see the [crate](crate).
///
/// If it is dropped before it is [complete](Self::complete), what was written stays as `NAME.part`;
/// an empty part is removed.
#[derive(Debug)]
pub struct OutputFile {
    file: File,
    path: PathBuf,
    /// What becomes of a regular file at the end; `None` for anything else.
    pending: Option<Pending>,
}

#[derive(Debug)]
struct Pending {
    part: PathBuf,
    /// The name behind all links.
    target: PathBuf,
    /// Whether a file may have that name.
    may_replace: bool,
}

impl OutputFile {
    /// Opens what `path` is, or creates the part of a regular file. `-` is standard output.
    ///
    /// # Errors
    /// [`OutputError`]: the file exists and is not to be replaced, is protected, is in use, or
    /// cannot be created.
    pub fn create(path: &Path, existing: Existing) -> Result<Self, OutputError> {
        let fail = |source: io::Error| OutputError::of(path, source);
        let (file, pending) = match follow(path, 1)? {
            Place::Descriptor(number) => (duplicate(number).map_err(fail)?, None),
            Place::Special(at) => (File::options().write(true).open(at).map_err(fail)?, None),
            Place::Regular(target, found) => {
                regular(path, &target, found.as_ref(), existing)?;
                let (part, file) = part::create(path, &target)?;
                if let Some(old) = &found {
                    inherit(&file, old).map_err(fail)?;
                }
                let may_replace = found.is_some() || existing == Existing::Replace;
                (file, Some(Pending { part, target, may_replace }))
            }
        };
        Ok(Self { file, path: path.to_owned(), pending })
    }

    /// Returns the name that was asked for.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the name of the incomplete file; `None` for a device, a FIFO or a descriptor.
    #[must_use]
    pub fn part(&self) -> Option<&Path> {
        self.pending.as_ref().map(|pending| pending.part.as_path())
    }

    /// Whether it is a regular file of its own: it has offsets, and can be shortened.
    #[must_use]
    pub fn is_regular(&self) -> bool {
        self.pending.is_some()
    }

    /// Writes all of `bytes` at an offset; into a pipe or a device, which has none, behind what was
    /// written before.
    ///
    /// # Errors
    /// The system's; some of the bytes may have been written.
    pub fn write_all_at(&mut self, bytes: &[u8], offset: u64) -> io::Result<()> {
        match &self.pending {
            Some(_) => self.file.write_all_at(bytes, offset),
            None => self.write_all(bytes),
        }
    }

    /// Sets the length of a regular file; anything else has none.
    ///
    /// # Errors
    /// The system's.
    pub fn set_len(&mut self, bytes: u64) -> io::Result<()> {
        self.pending.as_ref().map_or(Ok(()), |_| self.file.set_len(bytes))
    }

    /// Lets the next write go to this offset of a regular file.
    ///
    /// # Errors
    /// The system's.
    pub fn seek_to(&mut self, offset: u64) -> io::Result<()> {
        use std::io::Seek;
        match &self.pending {
            Some(_) => self.file.seek(io::SeekFrom::Start(offset)).map(drop),
            None => Ok(()),
        }
    }

    /// Makes the error of a failed write.
    #[must_use]
    pub fn fail(&self, source: io::Error) -> OutputError {
        OutputError::of(&self.path, source)
    }

    /// Ends the file: all of it is on the disk when this returns, under its own name. An old file
    /// of that name was complete until then.
    ///
    /// # Errors
    /// [`OutputError`]; the part still exists then.
    pub fn complete(self) -> Result<(), OutputError> {
        let Some(Pending { part, target, may_replace }) = &self.pending else { return Ok(()) };
        let path = || self.path.clone();
        if !is_named(&self.file, part) {
            return Err(OutputError::PartGone { path: path(), part: part.clone() });
        }
        let named = name_by(&self.file, part, target, |part, target| match may_replace {
            true => fs::rename(part, target),
            false => rename_new(part, target),
        });
        named.map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => OutputError::Exists { path: path() },
            _ => self.fail(error),
        })
    }
}

impl Write for OutputFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        loop {
            match self.file.write(bytes) {
                // Whoever gave us the descriptor set it so; waiting is what a writer wants.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    poll(&mut [PollFd::new(&self.file, PollFlags::OUT)], None)?;
                }
                written => return written,
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Drop for OutputFile {
    fn drop(&mut self) {
        let Some(Pending { part, .. }) = &self.pending else { return };
        let is_empty = self.file.metadata().is_ok_and(|data| data.len() == 0);
        // After `complete` the part's name is gone, or that of another program's file.
        if is_empty && is_named(&self.file, part) {
            let _ = fs::remove_file(part);
        }
    }
}
