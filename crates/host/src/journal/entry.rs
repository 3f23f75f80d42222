//! One line of a journal: a change of any kind.

use super::controller::OfCpusets;
use super::group::{OfGroup, OfPins};
use super::interface::OfInterface;
use super::outcome::UndoOutcome;
use super::setting::OfFile;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::io;

/// One change.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(super) struct JournalEntry {
    pub(super) id: u64,
    #[serde(flatten)]
    pub(super) what: What,
}

/// What was changed.
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
    /// Makes the change, and remembers what is needed to know it again.
    pub(super) fn apply(&mut self) -> io::Result<()> {
        match self {
            Self::Interface(one) => one.after.apply(&one.interface),
            Self::File(one) => one.apply(),
            Self::Group(one) => one.apply(),
            Self::Cpusets(one) => one.apply(),
            // It is written down only: what changes it comes next.
            Self::Pins(_) => Ok(()),
        }
    }

    /// Takes it back.
    pub(super) fn undo(&self) -> io::Result<UndoOutcome> {
        match self {
            Self::Interface(one) => one.undo(),
            Self::File(one) => one.undo(),
            Self::Group(one) => one.undo().map(UndoOutcome::from),
            Self::Cpusets(one) => one.undo(),
            Self::Pins(one) => one.undo().map(UndoOutcome::from),
        }
    }

    /// Takes back what a change that failed has left.
    pub(super) fn revoke(&self) -> io::Result<UndoOutcome> {
        match self {
            // None was made, and one that is there is somebody else's.
            Self::Group(_) => Ok(UndoOutcome::Nothing),
            _ => self.undo(),
        }
    }

    /// Hands what was before `self` to a later change of the same setting, so that this one can be
    /// forgotten; false if the other one is about something else.
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

/// What undoing it makes so: `veth0: the MTU (1500)`.
impl fmt::Display for What {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Interface(one) => write!(f, "{}: {}", one.interface, one.before),
            Self::File(one) => one.fmt(f),
            Self::Group(one) => write!(f, "{} (not there)", one.path.display()),
            Self::Cpusets(one) => write!(f, "{}: cpusets of groups (off)", one.group.display()),
            Self::Pins(one) => write!(f, "where {} threads may run", one.pins.len()),
        }
    }
}
