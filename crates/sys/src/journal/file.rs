//! The file: one line of JSON a step, `{"begin": entry}` before a change and `{"end": id}` after it
//! was undone. A line that begins an entry anew replaces it.

use super::namespace::{self, Place};
use super::value::Value;
use crate::netlink::Netlink;
use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// How the name of a journal ends.
pub(super) const SUFFIX: &str = "journal";

/// One change.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(super) struct Entry {
    pub(super) id: u64,
    /// Inode of the network namespace.
    namespace: u64,
    pub(super) interface: String,
    /// Number of the interface, because another one may come to have its name.
    index: u32,
    pub(super) before: Value,
    pub(super) after: Value,
}

impl Entry {
    /// What setting `value` would change, in the namespace of the calling thread.
    pub(super) fn of(interface: &str, value: Value) -> io::Result<Self> {
        Ok(Self {
            id: 0,
            namespace: namespace::current()?,
            interface: interface.to_owned(),
            index: index(interface)?,
            before: value.current(interface)?,
            after: value,
        })
    }

    /// Whether it changes the same setting of the same interface.
    pub(super) fn is_same_as(&self, other: &Self) -> bool {
        (self.namespace, self.index) == (other.namespace, other.index)
            && self.after.is_same_setting(&other.after)
    }

    /// Puts the setting back, in its own namespace; whether there was anything to put back.
    pub(super) fn undo(&self) -> io::Result<bool> {
        match namespace::find(self.namespace)? {
            Place::Here => self.undo_here(),
            Place::There(namespace) => namespace::inside(&namespace, || self.undo_here()),
            Place::Gone => Ok(false),
            Place::Unknown => Err(io::Error::new(
                io::ErrorKind::PermissionDenied,
                "its network namespace cannot be seen from here",
            )),
        }
    }

    fn undo_here(&self) -> io::Result<bool> {
        let is_ours = match index(&self.interface) {
            Ok(index) => index == self.index,
            Err(error) if error.raw_os_error() == Some(libc::ENODEV) => false,
            Err(error) => return Err(error),
        };
        // What is not as we left it was changed by somebody who meant it.
        if !is_ours || self.after.current(&self.interface)? != self.after {
            return Ok(false);
        }
        self.before.apply(&self.interface)?;
        Ok(self.before != self.after)
    }
}

fn index(interface: &str) -> io::Result<u32> {
    let no_device = |_| io::Error::from_raw_os_error(libc::ENODEV);
    let mut netlink = Netlink::open().map_err(io::Error::other)?;
    netlink.interface(interface).map(|interface| interface.index).map_err(no_device)
}

#[derive(Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
enum Step {
    Begin(Entry),
    End(u64),
}

/// A journal that this process writes. Dropping it removes it.
#[derive(Debug)]
pub(super) struct File {
    file: fs::File,
    path: PathBuf,
}

impl File {
    /// Makes a journal and locks it.
    pub(super) fn create(folder: &Path) -> io::Result<Self> {
        DirBuilder::new().recursive(true).mode(0o755).create(folder)?;
        // A process may have several journals, in tests at least.
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("{}-{number}", std::process::id());
        let (draft, path) = (folder.join(&name), folder.join(format!("{name}.{SUFFIX}")));
        let mut options = OpenOptions::new();
        options.create(true).truncate(true).write(true).mode(0o600);
        let file = options.open(&draft)?;
        flock(&file, FlockOperation::NonBlockingLockExclusive)?;
        // Only a locked file gets the name of a journal: no other process takes it for a dead one.
        fs::rename(&draft, &path)?;
        Ok(Self { file, path })
    }

    /// Writes what is about to be changed.
    pub(super) fn begin(&mut self, entry: &Entry) -> io::Result<()> {
        self.append(&Step::Begin(entry.clone()))
    }

    /// Writes that a change is undone.
    pub(super) fn end(&mut self, id: u64) -> io::Result<()> {
        self.append(&Step::End(id))
    }

    fn append(&mut self, step: &Step) -> io::Result<()> {
        // In one call: a line is there, or it is not.
        self.file.write_all(format!("{}\n", serde_json::to_string(step)?).as_bytes())
    }
}

impl Drop for File {
    fn drop(&mut self) {
        // Before the lock goes: nobody else takes it for the journal of a dead process.
        let _ = fs::remove_file(&self.path);
    }
}

/// A journal whose process is dead, held by this one.
pub(super) struct Dead {
    file: fs::File,
    path: PathBuf,
}

impl Dead {
    /// Takes a journal over; none if its process lives, somebody else was quicker, or it is not
    /// ours to follow (it belongs to another user).
    pub(super) fn take(path: &Path) -> io::Result<Option<Self>> {
        let file = match OpenOptions::new().read(true).write(true).open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => return Ok(None),
            Err(error) => return Err(error),
        };
        let inside = file.metadata()?;
        let locked = flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok();
        let is_there = fs::metadata(path).is_ok_and(|outside| outside.ino() == inside.ino());
        let is_mine = inside.uid() == rustix::process::geteuid().as_raw();
        Ok((locked && is_there && is_mine).then(|| Self { file, path: path.to_owned() }))
    }

    /// What stands in it and is not undone, in the order of the changes. A last line without an
    /// end was never followed by its change.
    pub(super) fn entries(&mut self) -> io::Result<Vec<Entry>> {
        let mut text = String::new();
        self.file.read_to_string(&mut text)?;
        let mut entries: Vec<Entry> = Vec::new();
        for line in text.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n')) {
            match serde_json::from_str(line)? {
                Step::Begin(entry) => match entries.iter_mut().find(|known| known.id == entry.id) {
                    Some(known) => *known = entry,
                    None => entries.push(entry),
                },
                Step::End(id) => entries.retain(|entry| entry.id != id),
            }
        }
        Ok(entries)
    }

    /// Removes it: everything is undone.
    pub(super) fn remove(self) -> io::Result<()> {
        fs::remove_file(&self.path)
    }
}
