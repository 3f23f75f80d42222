//! Changes that outlast the process that made them, until they are taken back by name.
//!
//! The file is written like any journal, before each change, but no start of a program follows it:
//! only [`Kept::undo`] does. It is removed when nothing is left to take back.

use super::JournalError;
use super::entry::{Entry, What};
use super::file::{Kept as File, Opening};
use super::setting::OfFile;
use std::io;
use std::path::{Path, PathBuf};

/// Changes that last, under a name.
#[derive(Debug)]
pub struct Kept {
    folder: PathBuf,
    name: String,
}

/// What became of one change when it was to be taken back.
#[derive(Debug)]
pub struct Fate {
    /// What it was before: `/proc/sys/vm/swappiness (60)`.
    pub what: String,
    /// Whether it is so again; no: somebody else has changed it since, or it is gone. An error is
    /// kept, to be tried again.
    pub outcome: io::Result<bool>,
}

impl Kept {
    /// The changes of this name in a folder ([`super::folder`]).
    #[must_use]
    pub fn open_in(folder: &Path, name: &str) -> Self {
        Self { folder: folder.to_owned(), name: format!("{name}.kept") }
    }

    /// Writes a text into a file, for good. A second change of the same file is taken back to what
    /// was before the first.
    ///
    /// # Errors
    /// [`JournalError`]; then nothing is changed.
    pub fn write(&self, path: &Path, text: &str) -> Result<(), JournalError> {
        let failed =
            |source| JournalError::File { path: path.to_owned(), text: text.to_owned(), source };
        let lost = |source| JournalError::Write { folder: self.folder.clone(), source };
        let what = What::File(OfFile::of(path, text).map_err(failed)?);
        let mut file = File::open(&self.folder, &self.name, Opening::Make).map_err(lost)?;
        let file = file.as_mut().expect("made where it was missing");
        let entries = file.entries().map_err(lost)?;
        let id = entries.iter().map(|entry| entry.id + 1).max().unwrap_or(0);
        let mut entry = Entry { id, what };
        let earlier = entries.iter().find(|known| known.what.bequeath(&mut entry.what));
        file.begin(&entry).map_err(lost)?;
        if let Some(earlier) = earlier {
            file.end(earlier.id).map_err(lost)?;
        }
        if let Err(source) = entry.what.apply() {
            // What was there stays to be taken back, from the earlier change if there was one.
            if earlier.is_none() && entry.what.undo().is_ok() {
                file.end(id).map_err(lost)?;
            }
            return Err(failed(source));
        }
        Ok(())
    }

    /// What stands to be taken back, in the order of the changes.
    ///
    /// # Errors
    /// When the file cannot be read, or others could have written it.
    pub fn open_changes(&self) -> io::Result<Vec<String>> {
        let Some(mut file) = File::open(&self.folder, &self.name, Opening::Find)? else {
            return Ok(Vec::new());
        };
        Ok(file.entries()?.iter().map(|entry| entry.what.to_string()).collect())
    }

    /// Takes all back, the last one first.
    ///
    /// # Errors
    /// When the file cannot be read or written, or others could have written it.
    pub fn undo(&self) -> io::Result<Vec<Fate>> {
        let Some(mut file) = File::open(&self.folder, &self.name, Opening::Find)? else {
            return Ok(Vec::new());
        };
        let mut fates = Vec::new();
        for entry in file.entries()?.iter().rev() {
            let outcome = entry.what.undo();
            if outcome.is_ok() {
                file.end(entry.id)?;
            }
            fates.push(Fate { what: entry.what.to_string(), outcome });
        }
        if fates.iter().all(|fate| fate.outcome.is_ok()) {
            file.remove()?;
        }
        Ok(fates)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn changes_outlast_the_one_who_made_them() {
        let folder = tempfile::tempdir().unwrap();
        let (journals, setting) = (folder.path().join("journals"), folder.path().join("setting"));
        fs::write(&setting, "60\n").unwrap();
        let open = || Kept::open_in(&journals, "doctor");
        assert!(open().open_changes().unwrap().is_empty() && open().undo().unwrap().is_empty());
        open().write(&setting, "10").unwrap();
        open().write(&setting, "1").unwrap();
        let before = format!("{} (60)", setting.display());
        assert_eq!(open().open_changes().unwrap(), std::slice::from_ref(&before));
        let fates = open().undo().unwrap();
        assert_eq!(fates.len(), 1);
        assert!(fates[0].what == before && *fates[0].outcome.as_ref().unwrap());
        assert_eq!(fs::read_to_string(&setting).unwrap(), "60\n");
        assert_eq!(fs::read_dir(&journals).unwrap().count(), 0);
    }

    #[test]
    fn what_cannot_be_written_is_not_remembered() {
        let folder = tempfile::tempdir().unwrap();
        let kept = Kept::open_in(folder.path(), "doctor");
        let error = kept.write(Path::new("/proc/sys/nonsense"), "1").unwrap_err().to_string();
        assert!(error.starts_with("cannot write `1` into /proc/sys/nonsense: "), "{error}");
        // The kernel refuses this one.
        let error = kept.write(Path::new("/proc/sys/kernel/ostype"), "x").unwrap_err().to_string();
        assert!(error.contains("/proc/sys/kernel/ostype"), "{error}");
        assert!(kept.open_changes().unwrap().is_empty());
    }
}
