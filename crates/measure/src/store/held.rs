//! The lock of a run (flock(2)), a file next to the store: one process at a time carries a run out.
//! The lock ends with the process in every case.

use super::StoreError;
use millstream_cpu::fnv1a;
use std::fs::{File, OpenOptions, TryLockError};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// A run that this process holds.
#[derive(Debug)]
pub(super) struct RunLock {
    file: File,
    path: PathBuf,
}

impl RunLock {
    /// Locks a run; a second call in the same process fails as one in another process does.
    pub(super) fn hold(store: &Path, run: &str) -> Result<Self, StoreError> {
        // One name for the lock, independent of the working folder and of links to the store.
        let real = store.canonicalize();
        let real = real.map_err(|source| StoreError::File { path: store.to_owned(), source })?;
        let mut name = real.into_os_string();
        // The hash of the run's name, which may be longer than a file name and hold other
        // characters.
        name.push(format!(".{:016x}.lock", fnv1a(run.as_bytes())));
        let path = PathBuf::from(name);
        let fail = |source| StoreError::File { path: path.clone(), source };
        loop {
            let mut options = OpenOptions::new();
            let file = options.append(true).create(true).open(&path).map_err(fail)?;
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => return Err(StoreError::Alive(run.to_owned())),
                Err(TryLockError::Error(source)) => return Err(fail(source)),
            }
            // The previous holder may have removed the file in between.
            if file.metadata().map_err(fail)?.nlink() > 0 {
                return Ok(Self { file, path });
            }
        }
    }
}

impl Drop for RunLock {
    /// A remaining file does no harm: only the lock counts.
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
        let _ = self.file.unlock();
    }
}
