//! Changes that persist after the process, until they are undone by name.
//!
//! The file is written like any journal, before each change, but no start of a program follows it:
//! only [`PersistentChanges::undo`] does. It is removed when no change is left.

use super::entry::{JournalEntry, UndoOutcome, What};
use super::file::{File, KEPT_SUFFIX, Opening};
use super::paths::{Root, SettingPath};
use super::setting::OfFile;
use super::{JournalError, layers};
use serde::Serialize;
use std::io;
use std::path::{Path, PathBuf};

/// Persistent changes, under a name.
#[derive(Debug)]
pub struct PersistentChanges {
    root: Root,
    folder: PathBuf,
    name: String,
}

/// A setting that was put back, or the reason why not.
#[derive(Debug, Serialize)]
pub struct Undone {
    /// The setting before the change: `/proc/sys/vm/swappiness (60)`.
    pub what: String,
    /// Whether the change is undone. False: the setting was changed by others since, and the entry
    /// stays in the journal, because they may restore the value that they found. After an error it
    /// stays, too, for another try.
    pub put_back: bool,
    /// The error, if undoing failed.
    pub error: Option<String>,
}

/// The treatment of settings that were changed by others since.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Since {
    /// The setting is left unchanged, and its entry stays.
    Left,
    /// The setting gets its value from before our change all the same.
    Overruled,
}

impl PersistentChanges {
    /// Returns the changes of this name in a folder ([`super::folder`]).
    #[must_use]
    pub fn open_in(folder: &Path, name: &str) -> Self {
        Self::below(Path::new("/"), folder, name)
    }

    /// Returns the same for a machine of files below a root folder. No file outside it is written,
    /// whatever its links and the lines of its journal say: both came with it.
    #[must_use]
    pub fn below(root: &Path, folder: &Path, name: &str) -> Self {
        let (root, folder) = (Root::new(root), folder.to_owned());
        Self { root, folder, name: format!("{name}.{KEPT_SUFFIX}") }
    }

    /// Returns the path of the journal, while there are changes.
    #[must_use]
    pub fn file(&self) -> PathBuf {
        self.folder.join(&self.name)
    }

    /// Writes a text into a file, persistently. Undoing a second change of the same file restores
    /// the value before the first.
    ///
    /// # Errors
    /// [`JournalError`]; then nothing is changed.
    pub fn write(&self, path: &Path, text: &str) -> Result<(), JournalError> {
        let failed = |source| JournalError::unwritten(path, text, source);
        let lost = |source| JournalError::Write { folder: self.folder.clone(), source };
        let change = OfFile::of(&self.root, path, text).map_err(failed)?;
        let path: SettingPath = change.path.clone();
        let mut change = change.over(&self.folder, Some(&self.file()));
        let mut file = self.open(Opening::Make).map_err(lost)?;
        let file = file.as_mut().expect("made where it was missing");
        let entries = file.entries().map_err(lost)?;
        let next_id = entries.iter().map(|entry| entry.id.saturating_add(1)).max().unwrap_or(0);
        // One line for each file: a new line still has the value before the first change.
        let earlier = entries.iter().find_map(|entry| match &entry.what {
            What::File(one) if one.path == path => Some((entry, one)),
            _ => None,
        });
        let id = earlier.map_or(next_id, |(entry, _)| entry.id);
        let entry = |change: &OfFile| {
            let what = change.clone().upon(earlier.map(|(_, one)| one));
            JournalEntry { id, what: What::File(what) }
        };
        file.begin(&entry(&change)).map_err(lost)?;
        let made = change.apply(&self.root).map_err(failed);
        let made = made.and_then(|()| file.begin(&entry(&change)).map_err(lost));
        if made.is_err() && change.undo(&self.root, Since::Left).is_ok() {
            match earlier {
                Some((earlier, _)) => file.begin(earlier),
                None => file.end(id),
            }
            .map_err(lost)?;
        }
        made
    }

    /// Returns the changes to undo, in the order of the changes.
    ///
    /// # Errors
    /// When the file cannot be read, or other users could have written it.
    pub fn open_changes(&self) -> io::Result<Vec<String>> {
        let Some(mut file) = self.open(Opening::Find)? else {
            return Ok(Vec::new());
        };
        Ok(file.entries()?.iter().map(|entry| entry.what.to_string()).collect())
    }

    /// Undoes all changes, the last one first. Entries that are not undone stay: a later change
    /// over ours, by a shield for example, restores the value that we wrote, and only our journal
    /// has the value before it.
    ///
    /// # Errors
    /// When the file cannot be read or written, or other users could have written it.
    pub fn undo(&self, since: Since) -> io::Result<Vec<Undone>> {
        let Some(mut file) = self.open(Opening::Find)? else {
            return Ok(Vec::new());
        };
        let mut fates = Vec::new();
        for entry in file.entries()?.iter().rev() {
            let what = layers::settled(&entry.what, &self.folder, Some(&self.file()));
            let outcome = self.take_back(&what, since);
            let put_back = outcome.as_ref().is_ok_and(|outcome| *outcome != UndoOutcome::Left);
            if put_back {
                file.end(entry.id)?;
            }
            let error = outcome.err().map(|error| error.to_string());
            fates.push(Undone { what: entry.what.to_string(), put_back, error });
        }
        if fates.iter().all(|fate| fate.put_back) {
            file.remove()?;
        }
        Ok(fates)
    }

    fn open(&self, opening: Opening) -> io::Result<Option<File>> {
        self.root.contains(&self.folder)?;
        File::open(&self.folder, &self.name, opening)
    }

    fn take_back(&self, what: &What, since: Since) -> io::Result<UndoOutcome> {
        match what {
            What::File(one) => one.undo(&self.root, since),
            _ => Err(io::Error::new(io::ErrorKind::InvalidData, "only files are changed for good")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{Adjusting, setting};
    use super::*;
    use std::fs;

    #[test]
    fn changes_outlast_the_one_who_made_them() {
        let (folder, setting) = setting("60\n");
        let journals = folder.path().join("journals");
        let open = || PersistentChanges::below(folder.path(), &journals, "doctor");
        assert!(
            open().open_changes().unwrap().is_empty()
                && open().undo(Since::Left).unwrap().is_empty()
        );
        open().write(&setting, "10").unwrap();
        open().write(&setting, "1").unwrap();
        let before = "/proc/sys/vm/swappiness (60)".to_owned();
        assert_eq!(open().open_changes().unwrap(), std::slice::from_ref(&before));
        let fates = open().undo(Since::Left).unwrap();
        assert_eq!(fates.len(), 1);
        assert!(fates[0].what == before && fates[0].put_back);
        assert_eq!(fs::read_to_string(&setting).unwrap(), "60\n");
        assert_eq!(fs::read_dir(&journals).unwrap().count(), 0);
    }

    #[test]
    fn what_cannot_be_written_is_not_remembered() {
        let folder = tempfile::tempdir().unwrap();
        let kept = PersistentChanges::open_in(folder.path(), "doctor");
        let error = kept.write(Path::new("/proc/sys/nonsense"), "1").unwrap_err().to_string();
        assert!(error.starts_with("cannot write `1` to /proc/sys/nonsense: "), "{error}");
        // The kernel refuses this file.
        let error = kept.write(Path::new("/proc/sys/kernel/ostype"), "x").unwrap_err().to_string();
        assert!(error.contains("/proc/sys/kernel/ostype"), "{error}");
        assert!(kept.open_changes().unwrap().is_empty());
    }

    #[test]
    fn a_second_change_that_is_refused_leaves_the_first_to_be_taken_back() {
        let (folder, adjusting) = (tempfile::tempdir().unwrap(), Adjusting::new());
        let (kept, before) =
            (PersistentChanges::open_in(folder.path(), "doctor"), adjusting.value());
        kept.write(&adjusting.path(), "2").unwrap();
        // The kernel refuses one value and changes the other.
        for text in ["nonsense", "4294967295"] {
            let _ = kept.write(&adjusting.path(), text).unwrap_err();
            assert_eq!(adjusting.value(), "00000002\n", "{text}");
        }
        let fates = kept.undo(Since::Left).unwrap();
        assert!(fates.len() == 1 && fates[0].put_back, "{fates:?}");
        assert_eq!(adjusting.value(), before);
    }

    #[test]
    fn a_process_that_died_before_its_second_change_leaves_the_first_to_be_taken_back() {
        let (folder, setting) = setting("60\n");
        let journals = folder.path().join("journals");
        let kept = PersistentChanges::below(folder.path(), &journals, "doctor");
        kept.write(&setting, "10").unwrap();
        let first = fs::read_to_string(journals.join("doctor.kept")).unwrap();
        kept.write(&setting, "1").unwrap();
        // Its line was written, its value was not.
        let text = fs::read_to_string(journals.join("doctor.kept")).unwrap();
        let lines = text.lines().take(first.lines().count() + 1);
        let begun: String = lines.flat_map(|line| [line, "\n"]).collect();
        fs::write(journals.join("doctor.kept"), begun).unwrap();
        fs::write(&setting, "10\n").unwrap();
        assert!(kept.undo(Since::Left).unwrap()[0].put_back);
        assert_eq!(fs::read_to_string(&setting).unwrap(), "60\n");
    }

    #[test]
    fn what_somebody_else_wrote_between_two_changes_is_what_comes_back() {
        let (folder, setting) = setting("60\n");
        let kept =
            PersistentChanges::below(folder.path(), &folder.path().join("journals"), "doctor");
        kept.write(&setting, "10").unwrap();
        fs::write(&setting, "30\n").unwrap();
        kept.write(&setting, "1").unwrap();
        assert!(kept.undo(Since::Left).unwrap()[0].put_back);
        assert_eq!(fs::read_to_string(&setting).unwrap(), "30\n");
    }

    #[test]
    fn what_is_laid_over_a_change_does_not_make_it_forgotten() {
        let (folder, setting) = setting("0-3\n");
        let journals = folder.path().join("journals");
        let kept = PersistentChanges::below(folder.path(), &journals, "doctor");
        let journal = std::sync::Arc::new(super::super::Journal::below(folder.path(), &journals));
        let is = |text: &str| assert_eq!(fs::read_to_string(&setting).unwrap(), text);
        kept.write(&setting, "0-1").unwrap();
        let shield = journal.write_file(&setting, "0").unwrap();
        let fates = kept.undo(Since::Left).unwrap();
        assert!(fates.len() == 1 && !fates[0].put_back && fates[0].error.is_none(), "{fates:?}");
        assert_eq!(kept.open_changes().unwrap().len(), 1, "it stays noted");
        is("0\n");
        assert_eq!(shield.undo().unwrap(), None);
        is("0-1\n");
        assert!(kept.undo(Since::Left).unwrap()[0].put_back);
        is("0-3\n");
        assert!(kept.open_changes().unwrap().is_empty());
    }

    #[test]
    fn what_somebody_else_has_changed_since_is_overruled_on_demand() {
        let (folder, setting) = setting("60\n");
        let kept =
            PersistentChanges::below(folder.path(), &folder.path().join("journals"), "doctor");
        kept.write(&setting, "10").unwrap();
        fs::write(&setting, "30\n").unwrap();
        let undone = kept.undo(Since::Left).unwrap();
        assert!(!undone[0].put_back && undone[0].error.is_none(), "{undone:?}");
        assert!(kept.undo(Since::Overruled).unwrap()[0].put_back);
        assert_eq!(fs::read_to_string(&setting).unwrap(), "60\n");
        assert!(kept.open_changes().unwrap().is_empty());
    }
}
