//! The file of a soak's record: one process at a time has it, and no power failure cuts it.

use super::record::SoakRecord;
use millstream_output::name_whole;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Most attempts to open a file that another process makes or replaces at the same time.
const TRIES: u32 = 100;

/// A file with the record of a soak, locked while this exists.
///
/// The lock belongs to the file, and each save makes a new file: that one is locked before it gets
/// the name of the old one.
#[derive(Debug)]
pub struct SoakFile {
    path: PathBuf,
    /// Holds the lock.
    locked: File,
    /// Nothing was written yet: the file is empty.
    is_new: bool,
}

/// Why a record cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SoakFileError {
    /// The file cannot be read or written.
    #[error("cannot {what} the file {}: {source}", path.display())]
    File {
        /// The operation.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// Another process has it.
    #[error(
        "another `bench soak` works with the state {}: wait for its end, or give another file",
        path.display()
    )]
    Busy {
        /// The file.
        path: PathBuf,
    },
    /// It is not the record of a soak.
    #[error(
        "{} is not a state of `bench soak` that this version reads ({reason}): give another file, \
         or delete this one to begin a new soak",
        path.display()
    )]
    Form {
        /// The file.
        path: PathBuf,
        /// The fault.
        reason: String,
    },
}

impl SoakFile {
    /// Locks the file, and reads its record; there is none when the file did not exist.
    ///
    /// # Errors
    /// [`SoakFileError`].
    pub fn open(path: &Path) -> Result<(Self, Option<SoakRecord>), SoakFileError> {
        for _ in 1..TRIES {
            if let Some(found) = Self::try_open(path)? {
                return Ok(found);
            }
        }
        let source = ErrorKind::AlreadyExists.into();
        Err(SoakFileError::File { what: "write", path: path.to_owned(), source })
    }

    /// `None` when another process made or replaced the file meanwhile, or a link leads to no file.
    fn try_open(path: &Path) -> Result<Option<(Self, Option<SoakRecord>)>, SoakFileError> {
        let fails = |what| move |source| SoakFileError::File { what, path: path.into(), source };
        let (mut locked, is_new) = match File::open(path) {
            Ok(file) => (file, false),
            Err(error) if error.kind() == ErrorKind::NotFound => {
                match OpenOptions::new().write(true).create_new(true).open(path) {
                    Ok(file) => (file, true),
                    Err(error) if error.kind() == ErrorKind::AlreadyExists => return Ok(None),
                    Err(error) => return Err(fails("write")(error)),
                }
            }
            Err(error) => return Err(fails("read")(error)),
        };
        lock(&locked, path)?;
        if !is_named(&locked, path) {
            return Ok(None);
        }
        let mut text = String::new();
        let record = match is_new {
            true => None,
            false => {
                locked.read_to_string(&mut text).map_err(fails("read"))?;
                let form = |reason| SoakFileError::Form { path: path.into(), reason };
                Some(SoakRecord::of_text(&text).map_err(form)?)
            }
        };
        Ok(Some((Self { path: path.to_owned(), locked, is_new }, record)))
    }

    /// Writes the file anew: whoever reads it sees the old state or the new one, also after a power
    /// failure.
    ///
    /// # Errors
    /// [`SoakFileError`]; the old state is unchanged then.
    pub fn save(&mut self, record: &SoakRecord) -> Result<(), SoakFileError> {
        let mut new = self.path.clone().into_os_string();
        new.push(".new");
        let new = Path::new(&new);
        match write(new, &self.path, record.text().as_bytes()) {
            Ok(file) => {
                (self.locked, self.is_new) = (file, false);
                Ok(())
            }
            Err(source) => {
                // A file that cannot be removed either is left.
                let _ = std::fs::remove_file(new);
                Err(SoakFileError::File { what: "write", path: self.path.clone(), source })
            }
        }
    }
}

impl Drop for SoakFile {
    fn drop(&mut self) {
        // An empty file is no state.
        if self.is_new && is_named(&self.locked, &self.path) {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// Writes a file under the name `new`, then renames it; returns it locked.
fn write(new: &Path, path: &Path, bytes: &[u8]) -> io::Result<File> {
    let mut file = File::create(new)?;
    // Nobody else has it: whoever writes it has locked the state.
    let _ = file.try_lock();
    file.write_all(bytes)?;
    name_whole(&file, new, path)?;
    Ok(file)
}

/// Locks a file for this process. Not every file system has locks.
fn lock(file: &File, path: &Path) -> Result<(), SoakFileError> {
    match file.try_lock() {
        Err(TryLockError::WouldBlock) => Err(SoakFileError::Busy { path: path.to_owned() }),
        Ok(()) | Err(TryLockError::Error(_)) => Ok(()),
    }
}

/// Whether this is the file of that name.
fn is_named(file: &File, path: &Path) -> bool {
    let (Ok(own), Ok(named)) = (file.metadata(), std::fs::metadata(path)) else { return false };
    (own.dev(), own.ino()) == (named.dev(), named.ino())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder() -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("soak.json");
        (folder, path)
    }

    fn names(folder: &tempfile::TempDir) -> Vec<String> {
        let entries = std::fs::read_dir(folder.path()).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    #[test]
    fn one_process_at_a_time_has_the_file() {
        let (folder, path) = folder();
        let busy = || SoakFile::open(&path).unwrap_err().to_string();
        let (mut file, none) = SoakFile::open(&path).unwrap();
        assert_eq!(none, None);
        assert!(busy().contains("another `bench soak` works with the state"), "{}", busy());
        file.save(&SoakRecord::new(1, "")).unwrap();
        assert!(busy().ends_with("wait for its end, or give another file"), "{}", busy());
        file.save(&SoakRecord::new(2, "")).unwrap();
        assert!(busy().contains("another `bench soak`"), "{}", busy());
        drop(file);
        let (file, record) = SoakFile::open(&path).unwrap();
        assert_eq!(record, Some(SoakRecord::new(2, "")));
        drop(file);
        assert_eq!(names(&folder), ["soak.json"]);
    }

    #[test]
    fn a_soak_that_did_not_begin_leaves_no_file() {
        let (folder, path) = folder();
        drop(SoakFile::open(&path).unwrap());
        assert!(names(&folder).is_empty());
        std::os::unix::fs::symlink("nowhere", &path).unwrap();
        let error = SoakFile::open(&path).unwrap_err().to_string();
        assert!(error.starts_with("cannot write the file"), "{error}");
    }

    #[test]
    fn what_cannot_be_saved_leaves_nothing_behind() {
        let (folder, path) = folder();
        let (mut file, _) = SoakFile::open(&path).unwrap();
        file.save(&SoakRecord::new(1, "")).unwrap();
        // A name that a folder has taken: the bytes can be written, the name cannot be given.
        std::fs::remove_file(&path).unwrap();
        std::fs::create_dir(&path).unwrap();
        let error = file.save(&SoakRecord::new(2, "")).unwrap_err().to_string();
        assert!(error.starts_with("cannot write the file"), "{error}");
        assert_eq!(names(&folder), ["soak.json"]);
    }

    #[test]
    fn another_file_is_refused_with_the_remedy() {
        let (_folder, path) = folder();
        for text in ["", "{}", "[1]"] {
            std::fs::write(&path, text).unwrap();
            let error = SoakFile::open(&path).unwrap_err().to_string();
            assert!(error.contains("is not a state of `bench soak`"), "{error}");
            assert!(error.ends_with("give another file, or delete this one to begin a new soak"));
            assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
        }
        assert!(SoakFile::open(Path::new("/no/such/folder/x")).is_err());
    }
}
