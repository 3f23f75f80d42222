//! Changes that belong together.

use super::{Journal, JournalError, TemporaryChange};
use std::io;
use std::path::Path;
use std::sync::Arc;

/// Changes in the order in which they were made; undone from the last one to the first, when they
/// are dropped or on demand.
#[derive(Debug)]
#[must_use = "dropping them puts the settings back"]
pub struct Changes {
    journal: Arc<Journal>,
    list: Vec<TemporaryChange>,
}

impl Changes {
    /// None yet.
    pub fn new(journal: &Arc<Journal>) -> Self {
        Self { journal: Arc::clone(journal), list: Vec::new() }
    }

    /// Where they are written down.
    #[must_use]
    pub fn journal(&self) -> &Arc<Journal> {
        &self.journal
    }

    /// One more.
    pub fn push(&mut self, change: TemporaryChange) {
        self.list.push(change);
    }

    /// [`Journal::write_file`], as one more.
    ///
    /// # Errors
    /// [`JournalError`]; then nothing is changed.
    pub fn write_file(&mut self, path: &Path, text: &str) -> Result<(), JournalError> {
        self.list.push(self.journal.write_file(path, text)?);
        Ok(())
    }

    /// Puts all back now. What is left as it is, because somebody else has changed it since or has
    /// come to rely on it: `/proc/irq/24/smp_affinity_list (0-3)`.
    ///
    /// # Errors
    /// The system's, of the first that failed, after all were tried; what failed stays in the
    /// journal, and the next start tries again.
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
