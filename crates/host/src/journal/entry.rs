//! A line of a journal: a change of any kind.

use super::controller::OfCpusets;
use super::group::{OfGroup, OfPins};
use super::interface::OfInterface;
use super::kept::Since;
use super::paths::Root;
use super::setting::OfFile;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::io;

/// A change.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(super) struct JournalEntry {
    pub(super) id: u64,
    #[serde(flatten)]
    pub(super) what: What,
}

/// The changed setting.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum What {
    Interface(OfInterface),
    File(OfFile),
    Group(OfGroup),
    Cpusets(OfCpusets),
    Pins(OfPins),
}

impl What {
    /// Makes the change, and stores the data needed to recognise it later.
    pub(super) fn apply(&mut self, root: &Root) -> io::Result<()> {
        match self {
            Self::Interface(one) => one.after.apply(&one.interface),
            Self::File(one) => one.apply(root),
            Self::Group(one) => one.apply(root),
            Self::Cpusets(one) => one.apply(root),
            // Only a record: the change itself follows.
            Self::Pins(_) => Ok(()),
        }
    }

    /// Undoes the change.
    pub(super) fn undo(&self, root: &Root) -> io::Result<UndoOutcome> {
        match self {
            Self::Interface(one) => one.undo(),
            Self::File(one) => one.undo(root, Since::Left),
            Self::Group(one) => one.undo(root).map(UndoOutcome::from),
            Self::Cpusets(one) => one.undo(root),
            Self::Pins(one) => one.undo().map(UndoOutcome::from),
        }
    }

    /// Undoes the remains of a failed change.
    pub(super) fn revoke(&self, root: &Root) -> io::Result<UndoOutcome> {
        match self {
            // No group was made, and an existing one belongs to another process.
            Self::Group(_) => Ok(UndoOutcome::Nothing),
            _ => self.undo(root),
        }
    }

    /// Passes the value before `self` to a later change of the same setting, so that this one can
    /// be removed; false if the other one is about another setting.
    pub(super) fn bequeath(&self, later: &mut Self) -> bool {
        match (self, later) {
            (Self::Interface(one), Self::Interface(later)) if one.is_same_as(later) => {
                later.before = one.before;
                true
            }
            (Self::File(one), Self::File(later)) if one.path == later.path => {
                *later = later.clone().upon(Some(one));
                true
            }
            _ => false,
        }
    }
}

/// The value after undoing: `veth0: the MTU (1500)`.
impl fmt::Display for What {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Interface(one) => write!(f, "{}: {}", one.interface, one.before),
            Self::File(one) => one.fmt(f),
            Self::Group(one) => one.fmt(f),
            Self::Cpusets(one) => one.fmt(f),
            Self::Pins(one) => write!(f, "allowed CPUs of {} threads", one.pins.len()),
        }
    }
}

/// The result of undoing a change; an error is separate, and is tried again.
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
