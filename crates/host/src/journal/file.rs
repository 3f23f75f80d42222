//! The journal file: one line of JSON per step, `{"begin": entry}` before a change and `{"end":
//! id}` after it was undone. A line that begins an entry again replaces it.

use super::entry::JournalEntry;
use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};
use std::fs::{self, DirBuilder, Metadata, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// The suffix of a journal's name.
pub(super) const SUFFIX: &str = "journal";

/// The suffix of a persistent journal, which is not followed automatically.
pub(super) const KEPT_SUFFIX: &str = "kept";

#[derive(Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
enum Step {
    Begin(JournalEntry),
    End(u64),
}

/// The most that is read of a journal, bytes: a line for each of a million threads.
const BYTES_MAX: u64 = 128 << 20;

/// The action where there is no file.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Opening {
    Make,
    Find,
}

/// Turns a missing file into `None`; any other error stays an error.
pub(super) fn found<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        result => result.map(Some),
    }
}

/// A journal, locked by this process: its own, a dead process's, or for a short time a persistent
/// one. The file remains unless it is removed.
#[derive(Debug)]
pub(super) struct File {
    file: fs::File,
    path: PathBuf,
}

impl File {
    /// Creates a journal and locks it.
    pub(super) fn create(folder: &Path) -> io::Result<Self> {
        DirBuilder::new().recursive(true).mode(0o755).create(folder)?;
        guard(folder)?;
        // A process may have several journals, at least in tests.
        static NEXT: AtomicU32 = AtomicU32::new(0);
        loop {
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let name = format!("{}-{number}.{SUFFIX}", std::process::id());
            let path = folder.join(name);
            let mut options = OpenOptions::new();
            let file = match options.create_new(true).append(true).mode(0o600).open(&path) {
                Ok(file) => file,
                // The file of a process that had the same number: it must not be overwritten.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                Err(error) => return Err(error),
            };
            // Before the lock, another process may have taken it for the journal of a dead process.
            if flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok()
                && is_at(&path, &file.metadata()?)
            {
                return Ok(Self { file, path });
            }
        }
    }

    /// Takes a journal over; `None` if its process is alive, another process was faster, or the
    /// file must not be followed because another user wrote it, or could have.
    pub(super) fn take(path: &Path) -> io::Result<Option<Self>> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK);
        let file = match options.open(path) {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => return Ok(None),
            file => found(file)?,
        };
        let Some(file) = file else { return Ok(None) };
        let inside = file.metadata()?;
        let locked =
            is_ours(&inside) && flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok();
        Ok((locked && is_at(path, &inside)).then(|| Self { file, path: path.to_owned() }))
    }

    /// Opens a persistent journal and waits for its lock; `None` where there is no file and
    /// `opening` does not create one.
    pub(super) fn open(folder: &Path, name: &str, opening: Opening) -> io::Result<Option<Self>> {
        let path = folder.join(name);
        if opening == Opening::Make {
            DirBuilder::new().recursive(true).mode(0o755).create(folder)?;
        }
        loop {
            let mut options = OpenOptions::new();
            options.read(true).append(true).mode(0o600).custom_flags(libc::O_NOFOLLOW);
            let file = found(options.create(opening == Opening::Make).open(&path))?;
            let Some(file) = file else { return Ok(None) };
            guard(folder)?;
            flock(&file, FlockOperation::LockExclusive)?;
            let inside = file.metadata()?;
            if !is_ours(&inside) {
                let text = format!(
                    "{} must be a file that you own and only you can write to: remove it",
                    path.display()
                );
                return Err(io::Error::new(io::ErrorKind::PermissionDenied, text));
            }
            // The previous holder may have removed it.
            if is_at(&path, &inside) {
                return Ok(Some(Self { file, path }));
            }
        }
    }

    /// Returns the entries that are not undone, in the order of the changes.
    pub(super) fn entries(&mut self) -> io::Result<Vec<JournalEntry>> {
        entries(&mut self.file)
    }

    /// Records a change before it is made.
    pub(super) fn begin(&mut self, entry: &JournalEntry) -> io::Result<()> {
        self.append(&Step::Begin(entry.clone()))
    }

    /// Records that a change is undone.
    pub(super) fn end(&mut self, id: u64) -> io::Result<()> {
        self.append(&Step::End(id))
    }

    /// Returns the path.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Removes the journal: everything is undone.
    pub(super) fn remove(self) -> io::Result<()> {
        // Before the lock is released: no other process takes it for the journal of a dead process.
        fs::remove_file(&self.path)
    }

    fn append(&mut self, step: &Step) -> io::Result<()> {
        let line = format!("{}\n", serde_json::to_string(step)?);
        let bytes = self.file.metadata()?.len();
        self.file.write_all(line.as_bytes()).inspect_err(|_| {
            // A partial line, on a full file system, would corrupt the next one.
            let _ = self.file.set_len(bytes);
        })
    }
}

/// Reads the entries that are not undone, in the order of the changes. A last line without an end
/// was never followed by its change.
fn entries(file: &mut fs::File) -> io::Result<Vec<JournalEntry>> {
    let mut text = String::new();
    file.seek(io::SeekFrom::Start(0))?;
    if file.take(BYTES_MAX).read_to_string(&mut text)? as u64 == BYTES_MAX {
        let text = format!("it is longer than any journal ({BYTES_MAX} bytes): remove it");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, text));
    }
    let mut entries: Vec<JournalEntry> = Vec::new();
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

/// Reads the entries that are not undone in the other journals of a folder. It uses only journals
/// that no other user can have written, and skips entries that cannot be read or understood.
pub(super) fn others(folder: &Path, own: Option<&Path>) -> Vec<JournalEntry> {
    let listing = guard(folder).and_then(|()| fs::read_dir(folder));
    let paths = listing.into_iter().flatten().flatten().map(|entry| entry.path());
    let is_other = |path: &PathBuf| {
        let is_journal = path.extension().is_some_and(|end| end == SUFFIX || end == KEPT_SUFFIX);
        is_journal && own != Some(path)
    };
    let read = |path: PathBuf| {
        let mut options = OpenOptions::new();
        let options = options.read(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK);
        let mut file = options.open(path).ok()?;
        let inside = file.metadata().ok()?;
        let is_there = is_ours(&inside) && inside.nlink() == 1;
        is_there.then(|| entries(&mut file).ok()).flatten()
    };
    paths.filter(is_other).filter_map(read).flatten().collect()
}

/// Refuses a folder that other users can write to: the lines of its journals are executed with the
/// rights of the reader.
pub(super) fn guard(folder: &Path) -> io::Result<()> {
    let found = fs::symlink_metadata(folder)?;
    if found.is_dir() && is_ours_alone(&found) {
        return Ok(());
    }
    let text = format!(
        "{} must be a directory that you own and only you can write to: remove it",
        folder.display()
    );
    Err(io::Error::new(io::ErrorKind::PermissionDenied, text))
}

fn is_ours_alone(found: &Metadata) -> bool {
    found.uid() == rustix::process::geteuid().as_raw() && found.mode() & 0o022 == 0
}

/// Returns whether no other user can have written a journal; it may be removed by now.
fn is_ours(found: &Metadata) -> bool {
    found.is_file() && found.nlink() <= 1 && is_ours_alone(found)
}

/// Returns whether a path still leads to an open file.
fn is_at(path: &Path, file: &Metadata) -> bool {
    let same = |found: Metadata| (found.dev(), found.ino()) == (file.dev(), file.ino());
    fs::symlink_metadata(path).is_ok_and(same)
}
