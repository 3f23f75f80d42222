//! Why a file cannot be written.

use std::io;
use std::path::{Path, PathBuf};

/// The error of a file that cannot be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OutputError {
    /// A file of this name exists, and nobody has allowed to replace it.
    #[error(
        "{} exists already: choose another name, or add --force to replace it (in a graph file \
         overwrite = true, in Rust overwrite())",
        path.display()
    )]
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// The system refuses to open or to write it.
    #[error("cannot write {}: {source}{}", path.display(), hint(source))]
    Io {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// A name below `/dev` that should be a device is none.
    #[error(
        "cannot write {}: it is no device, and a new file below /dev would take the place of one: \
         write elsewhere, or have the device made again (mknod)",
        path.display()
    )]
    NoDevice {
        /// The name.
        path: PathBuf,
    },
    /// The name of the incomplete file belongs to something else.
    #[error(
        "cannot write {}: the incomplete file would be {}, which is no regular file: remove it, or \
         choose another name",
        path.display(),
        part.display()
    )]
    PartTaken {
        /// The file.
        path: PathBuf,
        /// The name of the incomplete file.
        part: PathBuf,
    },
    /// Another program has renamed or removed the incomplete file.
    #[error(
        "cannot complete {}: another program has renamed or removed {}; what was written may have \
         the same name with .1 or another number behind it",
        path.display(),
        part.display()
    )]
    PartGone {
        /// The file.
        path: PathBuf,
        /// The name of the incomplete file.
        part: PathBuf,
    },
}

impl OutputError {
    /// The error of a system call for `path`.
    #[must_use]
    pub fn of(path: &Path, source: io::Error) -> Self {
        Self::Io { path: path.to_owned(), source }
    }

    /// Returns the text without the name of the file, for errors that begin with it.
    #[must_use]
    pub fn reason(&self) -> String {
        match self {
            Self::Io { source, .. } => format!("{source}{}", hint(source)),
            other => other.to_string(),
        }
    }

    /// Whether the disk is full, or a limit of file sizes is reached.
    #[must_use]
    pub fn is_no_room(&self) -> bool {
        use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
        matches!(self, Self::Io { source, .. }
            if matches!(source.kind(), FileTooLarge | QuotaExceeded | StorageFull))
    }
}

impl From<OutputError> for io::Error {
    /// The cause, for errors that name the file themselves.
    fn from(error: OutputError) -> Self {
        match error {
            OutputError::Io { source, .. } => source,
            other => Self::other(other),
        }
    }
}

fn hint(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::StorageFull => "; free some space, or write elsewhere",
        io::ErrorKind::QuotaExceeded => "; the quota is used up: free some space of yours",
        io::ErrorKind::FileTooLarge => {
            "; a limit of file sizes is reached (ulimit -f, or the file system's): raise it, write \
             less, or write elsewhere"
        }
        io::ErrorKind::ResourceBusy => {
            "; this graph or another program reads or writes it: write elsewhere"
        }
        io::ErrorKind::NotFound => "; make its folder first",
        _ => "",
    }
}
