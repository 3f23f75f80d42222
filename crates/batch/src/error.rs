//! Errors of batches.

use std::io;
use std::path::PathBuf;

/// The reason why a batch cannot run, or one of its tasks.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BatchError {
    /// A file cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// A file or folder of results cannot be written.
    #[error("cannot write {}: {source}{}", path.display(), hint(source))]
    Write {
        /// The file or folder.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The file system has no locks.
    #[error(
        "cannot lock {}: {source}; tasks are claimed by locks: choose a folder `results` on a file \
         system with locks",
        path.display()
    )]
    Lock {
        /// The lock's file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The manifest does not have the form of one.
    #[error("the manifest {}: {reason}", path.display())]
    Manifest {
        /// The manifest.
        path: PathBuf,
        /// What is wrong and what to write.
        reason: String,
    },
    /// The graph of the manifest is wrong, or does not take the parameters.
    #[error(transparent)]
    Graph(#[from] millstream_flow::GraphFileError),
    /// No task has the name.
    #[error(
        "the manifest {} has no task `{name}`: `millstream batch list` shows the tasks. A task \
         gets another name when its recording, the graph, a parameter or millstream changes",
        manifest.display()
    )]
    NoTask {
        /// The manifest.
        manifest: PathBuf,
        /// The name.
        name: String,
    },
    /// A recording is another one than at the start of its task.
    #[error("the recording {} changed while the task read it: run the batch again", .0.display())]
    Changed(PathBuf),
    /// A worker process cannot be started.
    #[error(
        "cannot start a worker process: {0}; use fewer --workers, or allow more processes, open \
         files and memory (ulimit -u, -n, -v)"
    )]
    Start(io::Error),
    /// A path does not fit in a script for Slurm.
    #[error(
        "Slurm cannot write its log below {}: it takes a backslash or an end of line in the path \
         for itself; choose another folder with the key `results`",
        .0.display()
    )]
    SlurmPath(PathBuf),
    /// The graph cannot be split.
    #[error("the manifest {}: [split]: {reason}", manifest.display())]
    Split {
        /// The manifest.
        manifest: PathBuf,
        /// The reason.
        reason: String,
    },
    /// The results cannot be drawn.
    #[error("{0}")]
    Map(String),
}

impl BatchError {
    pub(crate) fn read(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Read { path, source }
    }

    pub(crate) fn write<E>(path: impl Into<PathBuf>) -> impl FnOnce(E) -> Self
    where
        io::Error: From<E>,
    {
        let path = path.into();
        move |source| Self::Write { path, source: source.into() }
    }
}

fn hint(source: &io::Error) -> &'static str {
    match source.kind() {
        io::ErrorKind::StorageFull => "; free some space, and run the batch again",
        io::ErrorKind::PermissionDenied => {
            "; choose another folder with the key `results`, or share this one: chmod 2775, and \
             umask 002 for each of its users"
        }
        _ => "",
    }
}
