//! One line of a journal: a change of any kind.

use super::group::{OfGroup, OfPins};
use super::interface::OfInterface;
use super::setting::OfFile;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::io;

/// One change.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(super) struct Entry {
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
    Pins(OfPins),
}

impl What {
    /// Makes the change.
    pub(super) fn apply(&self) -> io::Result<()> {
        match self {
            Self::Interface(one) => one.after.apply(&one.interface),
            Self::File(one) => one.apply(),
            Self::Group(one) => one.apply(),
            // It is written down only: what changes it comes next.
            Self::Pins(_) => Ok(()),
        }
    }

    /// Takes it back; whether there was anything to take back.
    pub(super) fn undo(&self) -> io::Result<bool> {
        match self {
            Self::Interface(one) => one.undo(),
            Self::File(one) => one.undo(),
            Self::Group(one) => one.undo(),
            Self::Pins(one) => one.undo(),
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
                later.before.clone_from(&one.before);
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
            Self::Pins(one) => write!(f, "where {} threads may run", one.pins.len()),
        }
    }
}
