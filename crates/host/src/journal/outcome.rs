//! What became of a change that was to be taken back.

/// See the file's head; an error is none of these, and is tried again.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum UndoOutcome {
    /// It is as it was before, by us.
    PutBack,
    /// It was as before already, or what it belonged to is gone.
    Nothing,
    /// It is left as it is: somebody else has changed it since, or has come to rely on it.
    Left,
}

impl From<bool> for UndoOutcome {
    /// Of one that nobody else can have changed: whether there was anything to put back.
    fn from(was_there: bool) -> Self {
        if was_there { Self::PutBack } else { Self::Nothing }
    }
}
