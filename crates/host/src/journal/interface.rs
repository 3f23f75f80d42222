//! A setting of an interface, in the interface's network namespace.

use super::entry::UndoOutcome;
use super::namespace::{self, NamespaceFile};
use super::value::SettingValue;
use crate::ethtool::Ethtool;
use serde::{Deserialize, Serialize};
use std::io;

/// A change of an interface.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(super) struct OfInterface {
    /// The inode of the network namespace.
    namespace: u64,
    /// Its cookie, because another namespace may get the same inode.
    #[serde(default)]
    cookie: Option<u64>,
    pub(super) interface: String,
    /// The number of the interface, because another one may get its name.
    index: u32,
    pub(super) before: SettingValue,
    pub(super) after: SettingValue,
}

impl OfInterface {
    /// Returns the change that setting `value` makes, in the namespace of the calling thread.
    pub(super) fn of(interface: &str, value: SettingValue) -> io::Result<Self> {
        Ok(Self {
            namespace: namespace::current()?,
            cookie: namespace::cookie(),
            interface: interface.to_owned(),
            index: Ethtool::open()?.index(interface)?,
            before: value.current(interface)?,
            after: value,
        })
    }

    /// Returns whether it changes the same setting of the same interface.
    pub(super) fn is_same_as(&self, other: &Self) -> bool {
        let place = |entry: &Self| (entry.namespace, entry.cookie, entry.index);
        place(self) == place(other) && self.after.is_same_setting(&other.after)
    }

    /// Restores the setting, in its own namespace.
    pub(super) fn undo(&self) -> io::Result<UndoOutcome> {
        match namespace::find(self.namespace)? {
            NamespaceFile::Here => self.undo_here(),
            NamespaceFile::There(namespace) => namespace::inside(&namespace, || self.undo_here()),
            NamespaceFile::Gone => Ok(UndoOutcome::Nothing),
            NamespaceFile::Unknown => Err(io::Error::new(
                io::ErrorKind::PermissionDenied,
                "its network namespace cannot be seen from here",
            )),
        }
    }

    fn undo_here(&self) -> io::Result<UndoOutcome> {
        if self.cookie != namespace::cookie() {
            return Ok(UndoOutcome::Nothing);
        }
        let is_ours = match Ethtool::open()?.index(&self.interface) {
            Ok(index) => index == self.index,
            Err(error) if error.raw_os_error() == Some(libc::ENODEV) => false,
            Err(error) => return Err(error),
        };
        if !is_ours {
            return Ok(UndoOutcome::Nothing);
        }
        let found = self.after.current(&self.interface)?;
        if found == self.before {
            return Ok(UndoOutcome::Nothing);
        }
        // A different value was set by others on purpose.
        if found != self.after {
            return Ok(UndoOutcome::Left);
        }
        self.before.apply(&self.interface)?;
        Ok(UndoOutcome::PutBack)
    }
}
