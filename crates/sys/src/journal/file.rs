//! The file: one line of JSON a step, `{"begin": entry}` before a change and `{"end": id}` after it
//! was undone. A line that begins an entry anew replaces it.

use super::namespace::{self, Place};
use super::value::Value;
use crate::netlink::{Netlink, NetlinkError};
use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};
use std::fs::{self, DirBuilder, Metadata, OpenOptions};
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
    /// Its cookie, because another namespace may come to have its inode.
    #[serde(default)]
    cookie: Option<u64>,
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
            cookie: namespace::cookie(),
            interface: interface.to_owned(),
            index: index(interface)?,
            before: value.current(interface)?,
            after: value,
        })
    }

    /// Whether it changes the same setting of the same interface.
    pub(super) fn is_same_as(&self, other: &Self) -> bool {
        let place = |entry: &Self| (entry.namespace, entry.cookie, entry.index);
        place(self) == place(other) && self.after.is_same_setting(&other.after)
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
        if self.cookie != namespace::cookie() {
            return Ok(false);
        }
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

/// The number of an interface; ENODEV if there is none, and only then.
fn index(interface: &str) -> io::Result<u32> {
    let mut netlink = Netlink::open().map_err(io::Error::other)?;
    match netlink.interface(interface) {
        Ok(interface) => Ok(interface.index),
        Err(NetlinkError::NoInterface { .. }) => Err(io::Error::from_raw_os_error(libc::ENODEV)),
        Err(error) => Err(io::Error::other(error)),
    }
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
        guard(folder)?;
        // A process may have several journals, in tests at least.
        static NEXT: AtomicU32 = AtomicU32::new(0);
        loop {
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let name = format!("{}-{number}.{SUFFIX}", std::process::id());
            let path = folder.join(name);
            let mut options = OpenOptions::new();
            let file = match options.create_new(true).append(true).mode(0o600).open(&path) {
                Ok(file) => file,
                // Of a process that had the same number: not ours to write over.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                Err(error) => return Err(error),
            };
            // Before it was locked, somebody may have taken it for that of a dead process.
            if flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok()
                && is_at(&path, &file.metadata()?)
            {
                return Ok(Self { file, path });
            }
        }
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
        let line = format!("{}\n", serde_json::to_string(step)?);
        let bytes = self.file.metadata()?.len();
        self.file.write_all(line.as_bytes()).inspect_err(|_| {
            // A part of a line, on a full file system, would spoil the next one.
            let _ = self.file.set_len(bytes);
        })
    }
}

impl Drop for File {
    fn drop(&mut self) {
        // Before the lock goes: nobody else takes it for the journal of a dead process.
        let _ = fs::remove_file(&self.path);
    }
}

/// Refuses a folder that anybody else can write in: what its journals say will be done, with the
/// rights of whoever reads them.
pub(super) fn guard(folder: &Path) -> io::Result<()> {
    let found = fs::symlink_metadata(folder)?;
    if found.is_dir() && is_ours_alone(&found) {
        return Ok(());
    }
    let text = format!(
        "others can write in {}, or it is no folder of this user: remove it",
        folder.display()
    );
    Err(io::Error::new(io::ErrorKind::PermissionDenied, text))
}

fn is_ours_alone(found: &Metadata) -> bool {
    found.uid() == rustix::process::geteuid().as_raw() && found.mode() & 0o022 == 0
}

/// Whether a path still leads to an open file.
fn is_at(path: &Path, file: &Metadata) -> bool {
    let same = |found: Metadata| (found.dev(), found.ino()) == (file.dev(), file.ino());
    fs::symlink_metadata(path).is_ok_and(same)
}

/// A journal whose process is dead, held by this one.
pub(super) struct Dead {
    file: fs::File,
    path: PathBuf,
}

impl Dead {
    /// Takes a journal over; none if its process lives, somebody else was quicker, or it is not
    /// ours to follow: somebody else wrote it, or could have.
    pub(super) fn take(path: &Path) -> io::Result<Option<Self>> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK);
        let file = match options.open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => return Ok(None),
            Err(error) => return Err(error),
        };
        let inside = file.metadata()?;
        let is_ours = inside.is_file() && inside.nlink() == 1 && is_ours_alone(&inside);
        let locked = is_ours && flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok();
        Ok((locked && is_at(path, &inside)).then(|| Self { file, path: path.to_owned() }))
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
