//! A run is carried out by one process at a time: it holds a lock (flock(2)) beside the store,
//! which ends with it, however it ends.

use super::StoreError;
use millstream_cpu::fnv1a;
use std::fs::{File, OpenOptions, TryLockError};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// A run in this process's hands.
#[derive(Debug)]
pub(super) struct RunLock {
    file: File,
    path: PathBuf,
}

impl RunLock {
    /// Takes a run in hand; who has it already in the same process is told the same as others.
    pub(super) fn hold(store: &Path, run: &str) -> Result<Self, StoreError> {
        // Under one name, wherever one is and whatever link leads there.
        let real = store.canonicalize();
        let real = real.map_err(|source| StoreError::Folder { path: store.to_owned(), source })?;
        let mut name = real.into_os_string();
        // The hash of a run's name, which may be longer than a file's and hold other characters.
        name.push(format!(".{:016x}.lock", fnv1a(run.as_bytes())));
        let path = PathBuf::from(name);
        let fail = |source| StoreError::Folder { path: path.clone(), source };
        loop {
            let mut options = OpenOptions::new();
            let file = options.append(true).create(true).open(&path).map_err(fail)?;
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => return Err(StoreError::Alive(run.to_owned())),
                Err(TryLockError::Error(source)) => return Err(fail(source)),
            }
            // Whoever had it may have removed it in between.
            if file.metadata().map_err(fail)?.nlink() > 0 {
                return Ok(Self { file, path });
            }
        }
    }
}

impl Drop for RunLock {
    /// A file that is left does no harm: what counts is the lock.
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
        let _ = self.file.unlock();
    }
}
