//! Changes of one file by several processes, one over the other. They may end in any order; the
//! last one to end restores the value before the first.
//!
//! ```text
//!   doctor.kept      0-3 -> 0-1            undone first: finds another value, and its entry stays
//!   4711-0.journal   0-1 -> 0, over 0-3    ended: restores 0-1, or 0-3 if no journal has 0-1
//! ```

use super::entry::{JournalEntry, What};
use super::file;
use super::paths::SettingPath;
use super::setting::OfFile;
use std::path::Path;

impl OfFile {
    /// Stores the value before the change below this one, if a journal of the folder other than
    /// `own` has it.
    pub(super) fn over(mut self, folder: &Path, own: Option<&Path>) -> Self {
        let mut others = others(folder, own, &self.path).into_iter();
        let below = others.find(|one| one.is_ours(&self.before));
        self.beneath = below.map(|one| one.beneath.unwrap_or(one.before));
        self
    }

    /// Returns the same change with the value to restore now: the value that it found, if the
    /// process that wrote it will undo that itself; if that process has ended, the value from the
    /// remaining journals.
    fn settled(mut self, folder: &Path, own: Option<&Path>) -> Self {
        let Some(beneath) = self.beneath.take() else { return self };
        let after = self.after.clone().unwrap_or_default();
        let mut others = others(folder, own, &self.path);
        others.retain(|one| one.before != after);
        if others.iter().any(|one| one.is_ours(&self.before)) {
            return self;
        }
        // Of the remaining changes, the one without another over it.
        let is_below =
            |one: &OfFile| others.iter().any(|over| Some(&over.before) == one.after.as_ref());
        let top = others.iter().find(|one| !is_below(one));
        self.before = top.and_then(|one| one.after.clone()).unwrap_or(beneath);
        self
    }
}

/// Returns a change as it is to be undone now; `own` is its journal in the folder.
pub(super) fn settled(what: &What, folder: &Path, own: Option<&Path>) -> What {
    match what.clone() {
        What::File(one) => What::File(one.settled(folder, own)),
        what => what,
    }
}

/// Returns the changes of a file in other journals of the folder, including those of dead
/// processes.
fn others(folder: &Path, own: Option<&Path>, path: &SettingPath) -> Vec<OfFile> {
    let is_it = |entry: JournalEntry| match entry.what {
        What::File(one) => Some(one).filter(|one| one.path == *path),
        _ => None,
    };
    let entries = file::others(folder, own).into_iter();
    entries.filter_map(is_it).collect()
}

#[cfg(test)]
mod tests {
    use super::super::{Journal, PersistentChanges, Since};
    use std::fs;
    use std::path::PathBuf;
    use std::sync::Arc;

    /// Returns a machine with a setting, a folder of journals, and the setting.
    fn machine(text: &str) -> (tempfile::TempDir, PathBuf, PathBuf) {
        let (folder, setting) = super::super::tests::setting(text);
        let journals = folder.path().join("journals");
        (folder, journals, setting)
    }

    #[test]
    fn the_last_of_several_shields_puts_back_what_was_before_the_first() {
        let texts = ["0-3\n", "0-2\n", "0-1\n", "0\n"];
        let orders =
            (0..4 * 4 * 4 * 4).map(|code| [code % 4, code / 4 % 4, code / 16 % 4, code / 64]);
        let is_order = |order: &[usize; 4]| (0..4).all(|index| order.contains(&index));
        for order in orders.filter(is_order) {
            let (root, journals, setting) = machine("0-4\n");
            let change = |text: &str| {
                let journal = Arc::new(Journal::below(root.path(), &journals));
                Some(journal.write_file(&setting, text).unwrap())
            };
            let mut changes = texts.map(|text| change(text.trim()));
            for index in order {
                changes[index].take().unwrap().undo().unwrap();
                let is = fs::read_to_string(&setting).unwrap();
                let top = changes.iter().rposition(Option::is_some);
                let expected = top.map_or("0-4\n", |top| texts[top]);
                assert_eq!(is, expected, "{order:?}, {index} has ended");
            }
            assert_eq!(fs::read_dir(&journals).unwrap().count(), 0);
        }
    }

    #[test]
    fn a_doctor_that_came_after_a_shield_knows_what_was_before_both() {
        for shield_first in [false, true] {
            let (root, journals, setting) = machine("0-3\n");
            let journal = Arc::new(Journal::below(root.path(), &journals));
            let shield = journal.write_file(&setting, "0-1").unwrap();
            let kept = PersistentChanges::below(root.path(), &journals, "doctor");
            kept.write(&setting, "0").unwrap();
            kept.write(&setting, "1").unwrap();
            let undo = || assert!(kept.undo(Since::Left).unwrap()[0].put_back);
            let is = |text: &str| assert_eq!(fs::read_to_string(&setting).unwrap(), text);
            if shield_first {
                assert!(shield.undo().unwrap().is_some(), "it is named as left");
                is("1\n");
                undo();
            } else {
                undo();
                is("0-1\n");
                shield.undo().unwrap();
            }
            is("0-3\n");
        }
    }
}
