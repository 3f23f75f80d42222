//! A list of related changes.

use super::{Journal, JournalError, TemporaryChange};
use std::io;
use std::path::Path;
use std::sync::Arc;

/// Changes in the order in which they were made; undone from the last to the first, on drop or on
/// request.
#[derive(Debug)]
#[must_use = "dropping them puts the settings back"]
pub struct Changes {
    journal: Arc<Journal>,
    list: Vec<TemporaryChange>,
}

impl Changes {
    /// Returns an empty list.
    pub fn new(journal: &Arc<Journal>) -> Self {
        Self { journal: Arc::clone(journal), list: Vec::new() }
    }

    /// Returns the journal of the changes.
    #[must_use]
    pub fn journal(&self) -> &Arc<Journal> {
        &self.journal
    }

    /// Adds a change.
    pub fn push(&mut self, change: TemporaryChange) {
        self.list.push(change);
    }

    /// Makes a change by [`Journal::write_file`] and adds it.
    ///
    /// # Errors
    /// [`JournalError`]; then nothing is changed.
    pub fn write_file(&mut self, path: &Path, text: &str) -> Result<(), JournalError> {
        self.list.push(self.journal.write_file(path, text)?);
        Ok(())
    }

    /// Restores all settings now. Returns those left unchanged, because they were changed by others
    /// since or are in use: `/proc/irq/24/smp_affinity_list (0-3)`.
    ///
    /// # Errors
    /// The system's first error, after all were tried; the failed changes stay in the journal, and
    /// the next start tries again.
    pub fn undo(mut self) -> io::Result<Vec<String>> {
        let (mut left, mut outcome) = (Vec::new(), Ok(()));
        while let Some(change) = self.list.pop() {
            match change.undo() {
                Ok(one) => left.extend(one),
                Err(error) => outcome = outcome.and(Err(error)),
            }
        }
        outcome.map(|()| left)
    }
}

impl Drop for Changes {
    fn drop(&mut self) {
        while self.list.pop().is_some() {}
    }
}
