//! The result of undoing a change.

/// The result; an error is separate, and is tried again.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum UndoOutcome {
    /// This call restored the value.
    PutBack,
    /// The value was restored already, or its owner is gone.
    Nothing,
    /// The value is left unchanged: others have changed it since, or use it.
    Left,
}

impl From<bool> for UndoOutcome {
    /// Converts the result for a setting that no other process can have changed: true when there
    /// was a value to restore.
    fn from(was_there: bool) -> Self {
        if was_there { Self::PutBack } else { Self::Nothing }
    }
}
