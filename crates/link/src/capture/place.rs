//! The file of a capture: no older file is replaced, and links of one program share a file.

use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The captures that this program has begun.
static BEGUN: Mutex<Vec<Begun>> = Mutex::new(Vec::new());

/// Device and inode, and the name: a file that is removed leaves its inode to another one.
type FileId = (u64, u64, String);

struct Begun {
    file: FileId,
    writers: usize,
    /// There has been more than one writer at a time.
    shared: bool,
}

/// A capture's file, opened to append.
///
/// The ports of a radio have one link string and so one file, and a link that is opened again goes
/// on in its file. Each writer appends whole blocks, which other writers do not part.
#[derive(Debug)]
pub(super) struct CaptureFile {
    file: FileId,
    /// Its bytes before this writer.
    pub start: u64,
    /// No other writer has begun a section that goes on.
    pub needs_head: bool,
}

impl CaptureFile {
    /// Opens the file of a name.
    ///
    /// # Errors
    /// Those of the system, and [`io::ErrorKind::AlreadyExists`] for a file with content that is
    /// not a capture of this program's run.
    pub fn open(path: &str) -> io::Result<(File, CaptureFile)> {
        let file = File::options().append(true).create(true).open(path)?;
        let about = file.metadata()?;
        let id = (about.dev(), about.ino(), path.to_owned());
        let start = if about.is_file() { about.len() } else { 0 };
        let mut begun = begun();
        let known = begun.iter_mut().find(|one| one.file == id);
        let writers = match known {
            Some(one) => {
                one.writers += 1;
                one.shared |= one.writers > 1;
                one.writers
            }
            None if start > 0 => {
                let text = "it exists: remove it, or give another name";
                return Err(io::Error::new(io::ErrorKind::AlreadyExists, text));
            }
            None => {
                begun.push(Begun { file: id.clone(), writers: 1, shared: false });
                1
            }
        };
        Ok((file, CaptureFile { file: id, start, needs_head: writers == 1 }))
    }

    /// Whether all that is behind `start` is of this writer.
    pub fn is_alone(&self) -> bool {
        begun().iter().any(|one| one.file == self.file && !one.shared)
    }
}

impl Drop for CaptureFile {
    fn drop(&mut self) {
        if let Some(one) = begun().iter_mut().find(|one| one.file == self.file) {
            one.writers -= 1;
            one.shared &= one.writers > 0;
        }
    }
}

fn begun() -> MutexGuard<'static, Vec<Begun>> {
    // Each change is a single step.
    BEGUN.lock().unwrap_or_else(PoisonError::into_inner)
}
