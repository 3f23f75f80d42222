//! Claims of tasks: one process runs a task at a time, on whichever machine.
//!
//! A claim is a lock (flock(2)) of `work/NAME.lock`. The kernel releases it when the process ends
//! in any way, and over NFS the server does. The file is removed while it is still locked; so a
//! process that got the lock of a removed file sees that its name leads elsewhere, and tries again.

use crate::results::{OLD, RESULT, TaskResult, line_of, make_parent, names_in, remove_folder};
use crate::{BatchError, ResultFolder};
use millstream_output::store_whole;
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Tries to get a lock that `batch list` may hold for a moment, and the pause between two.
pub(crate) const TRIES: u32 = 5;
const PAUSE: Duration = Duration::from_millis(20);

/// The answer to a claim.
#[derive(Debug)]
pub enum Claim {
    /// The task is this process's to run.
    Mine(TaskClaim),
    /// It is done.
    Done,
    /// Another process runs it.
    Busy,
}

/// A claimed task, with an empty folder for its files.
#[derive(Debug)]
pub struct TaskClaim {
    results: ResultFolder,
    name: String,
    lock: PathBuf,
    folder: PathBuf,
    /// Locked as long as it is open.
    _file: File,
}

impl TaskClaim {
    /// Claims it, even if it is done, in at most so many tries.
    pub(crate) fn take(
        results: &ResultFolder,
        name: &str,
        tries: u32,
    ) -> Result<Claim, BatchError> {
        let lock = results.work().join(format!("{name}.lock"));
        make_parent(&lock)?;
        for _ in 0..tries {
            let open = OpenOptions::new().create(true).append(true).open(&lock);
            let file = open.map_err(BatchError::write(&lock))?;
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Err(Errno::WOULDBLOCK) => std::thread::sleep(PAUSE),
                Err(error) => {
                    return Err(BatchError::Lock { path: lock, source: error.into() });
                }
                Ok(()) if !is_at(&file, &lock) => {}
                Ok(()) => {
                    let folder = results.work().join(name);
                    let (results, name) = (results.clone(), name.to_owned());
                    let claim = Self { results, name, lock, folder, _file: file };
                    return claim.begin();
                }
            }
        }
        Ok(Claim::Busy)
    }

    /// Makes the folder anew, unless the task is done.
    fn begin(self) -> Result<Claim, BatchError> {
        if self.results.result_of(&self.name).is_dir() {
            return Ok(Claim::Done);
        }
        remove_folder(&self.folder).map_err(BatchError::write(&self.folder))?;
        fs::create_dir(&self.folder).map_err(BatchError::write(&self.folder))?;
        Ok(Claim::Mine(self))
    }

    /// Returns the folder for the task's files.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns the files in the folder, with their sizes in bytes.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub fn files(&self) -> Result<std::collections::BTreeMap<String, u64>, BatchError> {
        let list = || -> io::Result<_> {
            let entries = fs::read_dir(&self.folder)?.map(|entry| {
                let entry = entry?;
                Ok((entry.file_name().to_string_lossy().into_owned(), entry.metadata()?.len()))
            });
            entries.collect()
        };
        list().map_err(BatchError::read(&self.folder))
    }

    /// Moves the folder with its files and this document to the results, in one step; they are on
    /// the disk then.
    ///
    /// # Errors
    /// They cannot be written; the task is not done then.
    pub fn finish(self, result: &TaskResult) -> Result<(), BatchError> {
        let path = self.folder.join(RESULT);
        store_whole(&path, line_of(result).as_bytes()).map_err(BatchError::write(&path))?;
        let target = self.results.result_of(&self.name);
        make_parent(&target)?;
        let moved = fs::rename(&self.folder, &target);
        let is_there = |error: &io::Error| {
            matches!(error.kind(), io::ErrorKind::DirectoryNotEmpty | io::ErrorKind::AlreadyExists)
        };
        match moved {
            // A process on a file system that loses locks was faster: its result is the same.
            Err(error) if is_there(&error) => {}
            moved => moved.map_err(BatchError::write(&target))?,
        }
        let parent = target.parent().unwrap_or(Path::new("/"));
        let synced = File::open(parent).and_then(|folder| folder.sync_all());
        // Not every file system can sync a folder, or needs to.
        match synced {
            Err(error) if error.kind() != io::ErrorKind::InvalidInput => {
                return Err(BatchError::write(parent)(error));
            }
            _ => {}
        }
        self.results.forget_failure(&self.name);
        Ok(())
    }
}

impl Drop for TaskClaim {
    /// Removes what the task left, then the lock's file, which is locked until then.
    fn drop(&mut self) {
        // What cannot be removed is removed by the next claim of the task.
        if remove_folder(&self.folder).is_ok() {
            let _ = fs::remove_file(&self.lock);
        }
    }
}

/// Whether the path still leads to the open file.
fn is_at(file: &File, path: &Path) -> bool {
    let same = || -> io::Result<bool> {
        let (open, named) = (file.metadata()?, fs::metadata(path)?);
        Ok((open.dev(), open.ino()) == (named.dev(), named.ino()))
    };
    same().unwrap_or(false)
}

impl ResultFolder {
    /// Claims a task for this process, until the claim is dropped or the process ends in any way. A
    /// failure before this run does not count any more.
    ///
    /// # Errors
    /// The folder cannot be written, or has no locks.
    pub fn claim(&self, name: &str) -> Result<Claim, BatchError> {
        self.check()?;
        if self.result_of(name).is_dir() {
            return Ok(Claim::Done);
        }
        let claim = TaskClaim::take(self, name, TRIES)?;
        if matches!(claim, Claim::Mine(_)) {
            self.forget_failure(name);
        }
        Ok(claim)
    }

    /// Removes what killed processes left in `work` and `list`. Tasks that run keep theirs.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub fn tidy(&self) -> Result<(), BatchError> {
        self.check()?;
        for name in names_in(&self.work())? {
            // A task's folder has a lock's file beside it; dropping a claim removes both.
            if let Some(name) = name.strip_suffix(".lock") {
                drop(TaskClaim::take(self, name, 1)?);
            } else if name.ends_with(OLD) {
                let _ = remove_folder(&self.work().join(name));
            }
        }
        let lists = self.root.join("list");
        for name in names_in(&lists)?.iter().filter(|name| name.ends_with(".part")) {
            // Half a list; a process that writes one now does without it.
            let _ = fs::remove_file(lists.join(name));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;
    use std::sync::atomic::{AtomicU32, Ordering};

    fn result() -> TaskResult {
        TaskResult {
            task: "a".into(),
            made_by: BTreeMap::new(),
            numbers: BTreeMap::from([("x".to_owned(), 1.5)]),
            files: BTreeMap::new(),
            remark: None,
            notes: Vec::new(),
            results: serde_json::Value::Null,
        }
    }

    fn mine(results: &ResultFolder) -> TaskClaim {
        match results.claim("a").unwrap() {
            Claim::Mine(claim) => claim,
            other => panic!("{other:?}"),
        }
    }

    fn folder() -> (tempfile::TempDir, ResultFolder) {
        let folder = tempfile::tempdir().unwrap();
        let results = ResultFolder::new(folder.path().join("results"));
        (folder, results)
    }

    #[test]
    fn a_result_appears_whole_and_once() {
        let (_folder, results) = folder();
        let claim = mine(&results);
        fs::write(claim.folder().join("out"), "bytes").unwrap();
        assert!(matches!(results.claim("a").unwrap(), Claim::Busy));
        assert_eq!(results.running().unwrap().len(), 1);
        assert!(results.done().unwrap().is_empty());
        results.fail("a", "it failed before").unwrap();
        claim.finish(&result()).unwrap();
        assert!(matches!(results.claim("a").unwrap(), Claim::Done));
        assert_eq!(results.result("a").unwrap().unwrap().numbers["x"], 1.5);
        assert_eq!(fs::read(results.result_of("a").join("out")).unwrap(), b"bytes");
        assert_eq!(results.failure("a").unwrap(), None, "it is done");
        assert_eq!(fs::read_dir(results.work()).unwrap().count(), 0, "nothing is left");
        assert!(results.running().unwrap().is_empty());
    }

    #[test]
    fn what_a_dead_process_left_does_not_get_into_the_result() {
        let (_folder, results) = folder();
        fs::create_dir_all(results.work().join("a")).unwrap();
        fs::write(results.work().join("a/half"), "half").unwrap();
        fs::write(results.work().join("a.lock"), "").unwrap();
        fs::write(results.work().join("b.lock"), "").unwrap();
        fs::create_dir_all(results.work().join("c.old/half")).unwrap();
        results.fail("a", "it failed before").unwrap();
        results.fail("b", "it failed before").unwrap();
        assert!(results.running().unwrap().is_empty(), "nobody holds the locks");
        let claim = mine(&results);
        assert_eq!(results.failure("a").unwrap(), None, "it is tried again");
        claim.finish(&result()).unwrap();
        assert!(!results.result_of("a").join("half").exists());
        results.tidy().unwrap();
        assert!(results.failure("b").unwrap().is_some(), "it is not");
        assert_eq!(fs::read_dir(results.work()).unwrap().count(), 0);
    }

    #[test]
    fn a_result_is_never_replaced() {
        let (_folder, results) = folder();
        let claim = mine(&results);
        fs::create_dir_all(results.result_of("a")).unwrap();
        fs::write(results.result_of("a").join("first"), "").unwrap();
        claim.finish(&result()).unwrap();
        assert!(results.result_of("a").join("first").exists());
        assert_eq!(fs::read_dir(results.work()).unwrap().count(), 0);
    }

    #[test]
    fn of_many_that_claim_one_has_the_task() {
        let (_folder, results) = folder();
        let (holders, runs) = (AtomicU32::new(0), AtomicU32::new(0));
        let work = || {
            for _ in 0..50 {
                if let Claim::Mine(claim) = results.claim("a").unwrap() {
                    assert_eq!(holders.fetch_add(1, Ordering::Relaxed), 0, "two have it");
                    fs::write(claim.folder().join("out"), "x").unwrap();
                    runs.fetch_add(1, Ordering::Relaxed);
                    holders.fetch_sub(1, Ordering::Relaxed);
                }
            }
        };
        std::thread::scope(|scope| (0..4).for_each(|_| drop(scope.spawn(work))));
        assert!(runs.load(Ordering::Relaxed) > 0);
        assert!(!results.work().join("a").exists());
    }

    #[test]
    fn a_folder_that_cannot_be_written_is_an_error_with_its_path() {
        let results = ResultFolder::new("/proc/none".into());
        let error = results.claim("a").unwrap_err().to_string();
        assert!(error.starts_with("cannot write /proc/none/work: "), "{error}");
    }
}
