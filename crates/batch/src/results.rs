//! The folder of results.
//!
//! | path | contents |
//! | --- | --- |
//! | `done/NAME/` | a result: `result.json` (one line), and the files of the graph's outputs |
//! | `failed/NAME.json` | the reason why a task failed; removed when it is done |
//! | `list/tasks.jsonl` | the tasks of the last run, for its workers |
//! | `work/NAME/`, `work/NAME.lock` | a task that is running, or whose process was killed |
//! | `work/NAME.old/` | the result of a part that is being removed, or whose process was killed |
//! | `slurm/TIME/` | what was submitted to Slurm, and what the tasks printed |
//!
//! A result is complete before its folder moves to `done` in one step, so there is no moment at
//! which half of one is there. Two processes that finish one task cannot both move theirs.

use crate::BatchError;
use millstream_output::store_whole;
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The document in a result's folder.
pub(crate) const RESULT: &str = "result.json";
/// The end of a folder's name in `work` that held a result.
pub(crate) const OLD: &str = ".old";

/// A folder of results, which may not exist yet.
#[derive(Clone, Debug)]
pub struct ResultFolder {
    pub(crate) root: PathBuf,
}

/// A result, as in its file.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct TaskResult {
    /// The task: name, recording, identity, parameters.
    pub task: Value,
    /// The graph file and the version of the program.
    pub made_by: BTreeMap<String, String>,
    /// The numbers of the result, by `BLOCK.METRIC`, for tables.
    pub numbers: BTreeMap<String, f64>,
    /// The files of the outputs, and their sizes in bytes.
    pub files: BTreeMap<String, u64>,
    /// Why the result is of little use, although the graph ran to its end; for example: no signal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remark: Option<String>,
    /// What its user should know about how it was made, a line each; for example: a part of the
    /// recording that was processed twice.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// The results of the run, as `millstream run --json` prints them.
    pub results: Value,
}

/// The reason why a task failed.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct TaskFailure {
    /// The task.
    pub task: String,
    /// The reason, in one line.
    pub reason: String,
}

impl ResultFolder {
    /// Names a folder; nothing is made.
    #[must_use]
    pub fn new(root: PathBuf) -> Self {
        Self { root }
    }

    /// Returns its path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.root
    }

    /// Returns the folder of a task's result, which may not exist.
    #[must_use]
    pub fn result_of(&self, name: &str) -> PathBuf {
        self.root.join("done").join(name)
    }

    /// Returns the folders in which files come and go.
    pub(crate) fn folders(&self) -> [PathBuf; 5] {
        ["done", "failed", "list", "work", "slurm"].map(|name| self.root.join(name))
    }

    /// Refuses a folder of results that is somebody else's link: files would be written and removed
    /// where it leads. One's own links, for example to a larger disk, are followed.
    pub(crate) fn check(&self) -> Result<(), BatchError> {
        let own = [rustix::process::geteuid().as_raw(), 0];
        for folder in self.folders() {
            let Ok(found) = fs::symlink_metadata(&folder) else { continue };
            if found.is_symlink() && !own.contains(&found.uid()) {
                let text = format!("it is a link of another user (number {})", found.uid());
                let source = io::Error::new(io::ErrorKind::InvalidInput, text);
                return Err(BatchError::Write { path: folder, source });
            }
        }
        Ok(())
    }

    pub(crate) fn list(&self) -> PathBuf {
        self.root.join("list").join("tasks.jsonl")
    }

    pub(crate) fn work(&self) -> PathBuf {
        self.root.join("work")
    }

    pub(crate) fn failed(&self, name: &str) -> PathBuf {
        self.root.join("failed").join(format!("{name}.json"))
    }

    /// Returns the names of all tasks that are done.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub fn done(&self) -> Result<BTreeSet<String>, BatchError> {
        let names = names_in(&self.root.join("done"))?;
        Ok(names.into_iter().collect())
    }

    /// Returns the names of all tasks whose last run failed.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub fn all_failed(&self) -> Result<BTreeSet<String>, BatchError> {
        let names = names_in(&self.root.join("failed"))?;
        Ok(names.iter().filter_map(|name| name.strip_suffix(".json")).map(str::to_owned).collect())
    }

    /// Returns the names of all tasks that a process runs now, here or on another machine.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub fn running(&self) -> Result<BTreeSet<String>, BatchError> {
        let work = self.work();
        let is_locked = |name: &&str| {
            // A shared lock for a moment: a process that claims the task meanwhile tries again.
            let lock = |file: &File| flock(file, FlockOperation::NonBlockingLockShared);
            File::open(work.join(format!("{name}.lock")))
                .is_ok_and(|file| lock(&file) == Err(Errno::WOULDBLOCK))
        };
        let names = names_in(&work)?;
        let locks = names.iter().filter_map(|name| name.strip_suffix(".lock"));
        Ok(locks.filter(is_locked).map(str::to_owned).collect())
    }

    /// Returns the result of a task; `None` without one.
    ///
    /// # Errors
    /// It cannot be read, or is no result.
    pub fn result(&self, name: &str) -> Result<Option<TaskResult>, BatchError> {
        read_json(&self.result_of(name).join(RESULT))
    }

    /// Returns why a task failed; `None` if it did not.
    ///
    /// # Errors
    /// As [`result`](Self::result).
    pub fn failure(&self, name: &str) -> Result<Option<TaskFailure>, BatchError> {
        read_json(&self.failed(name))
    }

    /// Keeps the reason of a failure, in one line.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn fail(&self, name: &str, reason: &str) -> Result<(), BatchError> {
        let path = self.failed(name);
        make_parent(&path)?;
        let failure = TaskFailure { task: name.to_owned(), reason: reason.to_owned() };
        let text = line_of(&failure);
        store_whole(&path, text.as_bytes()).map_err(BatchError::write(path))
    }

    /// Removes a result. It is gone in one step: nothing counts half of one as done.
    pub(crate) fn remove(&self, name: &str) -> io::Result<()> {
        self.check().map_err(io::Error::other)?;
        let old = self.work().join(format!("{name}{OLD}"));
        fs::create_dir_all(self.work())?;
        // What a process left that was killed here.
        remove_folder(&old)?;
        fs::rename(self.result_of(name), &old)?;
        remove_folder(&old)
    }

    pub(crate) fn forget_failure(&self, name: &str) {
        // Without it there is nothing to forget; a failure beside a result is never shown.
        let _ = fs::remove_file(self.failed(name));
    }
}

pub(crate) fn line_of(document: &impl Serialize) -> String {
    serde_json::to_string(document).unwrap_or_default() + "\n"
}

pub(crate) fn make_parent(path: &Path) -> Result<(), BatchError> {
    let parent = path.parent().unwrap_or(Path::new("/"));
    fs::create_dir_all(parent).map_err(BatchError::write(parent))
}

/// The names in a folder; none in one that does not exist.
pub(crate) fn names_in(folder: &Path) -> Result<Vec<String>, BatchError> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(BatchError::read(folder))?,
    };
    let names: io::Result<Vec<_>> = entries.map(|entry| Ok(entry?.file_name())).collect();
    let names = names.map_err(BatchError::read(folder))?;
    Ok(names.into_iter().filter_map(|name| name.into_string().ok()).collect())
}

fn read_json<T: serde::de::DeserializeOwned>(path: &Path) -> Result<Option<T>, BatchError> {
    let text = match fs::read(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        text => text.map_err(BatchError::read(path))?,
    };
    let parsed = serde_json::from_slice(&text);
    Ok(Some(parsed.map_err(io::Error::from).map_err(BatchError::read(path))?))
}

pub(crate) fn remove_folder(folder: &Path) -> io::Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Claim;
    use std::os::unix::fs::{lchown, symlink};

    #[test]
    fn a_link_that_somebody_else_planted_is_not_followed() {
        if !rustix::process::geteuid().is_root() {
            return eprintln!("skipped: only root can plant a link of another user");
        }
        for name in ["done", "failed", "list", "work", "slurm"] {
            let (folder, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
            let (results, link) =
                (ResultFolder::new(folder.path().to_owned()), folder.path().join(name));
            symlink(outside.path(), &link).unwrap();
            lchown(&link, Some(65_534), None).unwrap();
            for error in [results.claim("a").unwrap_err(), results.tidy().unwrap_err()] {
                assert!(error.to_string().contains("a link of another user"), "{name}: {error}");
            }
            results.remove("a").unwrap_err();
            assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 0, "{name}");
            // One's own is a place on another disk.
            lchown(&link, Some(0), None).unwrap();
            assert!(matches!(results.claim("a").unwrap(), Claim::Mine(_)), "{name}");
        }
    }
}
