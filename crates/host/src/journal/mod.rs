//! Host settings that this program changes: recorded before the change, and restored after it.
//!
//! A [`TemporaryChange`] is undone when it is dropped. If the process never gets there (`kill -9`),
//! the next one that calls [`recover`] finds the journal, sees by its lock that its process is
//! dead, and undoes its entries.
//!
//! ```text
//!   /run/millstream/4711-0.journal   one file a process, locked by flock(2) while it lives; one
//!                                    line a step, appended before the step is taken; removed when
//!                                    everything is undone
//! ```
//!
//! Undoing is careful: a setting that was changed by others since is left alone, as is an interface
//! that is gone (or another one of the same name), and undoing twice does no harm. A setting of an
//! interface is undone in the interface's network namespace. A journal is followed only if no other
//! user can have written it: its lines are executed with the rights of the reader. Even then a line
//! can name only what this program changes (`paths`).

mod changes;
mod controller;
mod entry;
mod file;
mod group;
mod interface;
mod kept;
mod layers;
mod namespace;
mod paths;
mod recover;
mod setting;
mod value;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use controller::OfCpusets;
use entry::{JournalEntry, UndoOutcome, What};
use file::File;
use group::{OfGroup, OfPins, Pin};
use interface::OfInterface;
use paths::Root;
use setting::OfFile;

pub use changes::Changes;
pub use group::Origins;
pub use kept::{PersistentChanges, Since, Undone};
pub use recover::{Recovered, recover, recover_below, recover_in};
pub(crate) use setting::{chosen, marked};
pub use value::SettingValue;

/// The reason why a setting could not be changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JournalError {
    /// The journal could not be written, so nothing was changed.
    #[error(
        "cannot write the journal of changed settings in {}: {source}. No setting was changed",
        folder.display()
    )]
    Write {
        /// The folder of journals.
        folder: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The setting could not be read or changed.
    #[error("cannot set {value} of {interface}: {source}{}", hint(.source))]
    Set {
        /// The interface.
        interface: String,
        /// The requested value.
        value: SettingValue,
        /// The system's error.
        source: io::Error,
    },
    /// A file or control group could not be read or changed.
    #[error("cannot {what}: {source}{}", needs_root(.source))]
    Change {
        /// The change: `write …`.
        what: String,
        /// The system's error.
        source: io::Error,
    },
}

impl JournalError {
    fn unwritten(path: &Path, text: &str, source: io::Error) -> Self {
        Self::Change { what: format!("write `{text}` to {}", path.display()), source }
    }
}

pub(crate) fn needs_root(source: &io::Error) -> &'static str {
    let is_denied = source.kind() == io::ErrorKind::PermissionDenied;
    if is_denied && !rustix::process::geteuid().is_root() { "; this needs root" } else { "" }
}

fn hint(source: &io::Error) -> &'static str {
    match source.raw_os_error() {
        Some(libc::EPERM) => "; this needs the capability CAP_NET_ADMIN: run the command with sudo",
        Some(libc::ENODEV) => "; there is no such interface in this network namespace",
        Some(libc::EOPNOTSUPP) => "; its driver cannot do that",
        _ => "",
    }
}

/// Returns the folder of journals: `/run/millstream` for root, else `$XDG_RUNTIME_DIR/millstream`,
/// or in the folder for temporary files where there is none. All three are empty after a reboot, as
/// are the settings.
#[must_use]
pub fn folder() -> PathBuf {
    if rustix::process::geteuid().is_root() {
        return FOLDER_OF_ROOT.into();
    }
    match std::env::var_os("XDG_RUNTIME_DIR").filter(|folder| !folder.is_empty()) {
        Some(folder) => Path::new(&folder).join("millstream"),
        None => {
            let user = rustix::process::geteuid().as_raw();
            std::env::temp_dir().join(format!("millstream-{user}"))
        }
    }
}

/// The folder of root's journals.
pub(crate) const FOLDER_OF_ROOT: &str = "/run/millstream";

/// The settings that this process has changed.
#[derive(Debug)]
pub struct Journal {
    root: Root,
    folder: PathBuf,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Present while there are changes to undo.
    file: Option<File>,
    entries: Vec<JournalEntry>,
    next_id: u64,
}

impl Journal {
    /// Returns the journal of this process, in [`folder`].
    #[must_use]
    pub fn of_process() -> Arc<Self> {
        static JOURNAL: OnceLock<Arc<Journal>> = OnceLock::new();
        Arc::clone(JOURNAL.get_or_init(|| Arc::new(Self::open_in(&folder()))))
    }

    /// Returns a journal in a folder; the file is created with the first change.
    #[must_use]
    pub fn open_in(folder: &Path) -> Self {
        Self::below(Path::new("/"), folder)
    }

    /// Returns the same for a machine of files below a root folder: no file outside it is changed.
    #[must_use]
    pub fn below(root: &Path, folder: &Path) -> Self {
        Self { root: Root::new(root), folder: folder.to_owned(), state: Mutex::default() }
    }

    /// Changes a setting of an interface, in the network namespace of the calling thread, until the
    /// [`TemporaryChange`] is dropped. A setting that has the value already is not written, but
    /// restored all the same.
    ///
    /// # Errors
    /// [`JournalError`]; then nothing is changed.
    pub fn change(
        self: &Arc<Self>,
        interface: &str,
        value: SettingValue,
    ) -> Result<TemporaryChange, JournalError> {
        let failed = |source| JournalError::Set { interface: interface.to_owned(), value, source };
        let what = OfInterface::of(interface, value).map_err(failed)?;
        self.make(What::Interface(what), failed)
    }

    /// Writes a text into a setting, one of a fixed list (`journal::paths`), until the
    /// [`TemporaryChange`] is dropped; then the file gets its old content, byte for byte.
    ///
    /// # Errors
    /// [`JournalError`]; then nothing is changed.
    pub fn write_file(
        self: &Arc<Self>,
        path: &Path,
        text: &str,
    ) -> Result<TemporaryChange, JournalError> {
        let failed = |source| JournalError::unwritten(path, text, source);
        let what = OfFile::of(&self.root, path, text).map_err(failed)?;
        let own = self.path();
        self.make(What::File(what.over(&self.folder, own.as_deref())), failed)
    }

    /// Makes a control group, whose name begins with `millstream`, until the [`TemporaryChange`] is
    /// dropped; then its members go back to where they came from.
    ///
    /// # Errors
    /// [`JournalError`]; then nothing is changed.
    pub fn make_group(
        self: &Arc<Self>,
        path: &Path,
        origins: Origins,
    ) -> Result<TemporaryChange, JournalError> {
        let what = format!("make the control group {}", path.display());
        let failed = |source| JournalError::Change { what: what.clone(), source };
        let group = OfGroup::of(&self.root, path, origins).map_err(&failed)?;
        self.make(What::Group(group), failed)
    }

    /// Enables cpusets of version 2 for the children of a group until the [`TemporaryChange`] is
    /// dropped; `None` where they have them already.
    ///
    /// # Errors
    /// [`JournalError`]; then nothing is changed.
    pub fn give_cpusets(
        self: &Arc<Self>,
        group: &Path,
    ) -> Result<Option<TemporaryChange>, JournalError> {
        let failed = |source| JournalError::Change {
            what: format!("enable cpusets for the groups below {}", group.display()),
            source,
        };
        let what = OfCpusets { group: self.root.inner(group).map_err(failed)? };
        match what.is_on(&self.root).map_err(failed)? {
            true => Ok(None),
            false => self.make(What::Cpusets(what), failed).map(Some),
        }
    }

    /// Restores the CPUs of those threads that may not run on all of `anywhere` now, when the
    /// [`TemporaryChange`] is dropped.
    ///
    /// # Errors
    /// [`JournalError`]; then nothing is recorded.
    pub fn keep_pins(
        self: &Arc<Self>,
        threads: &[i32],
        anywhere: &millstream_cpu::CpuSet,
    ) -> Result<TemporaryChange, JournalError> {
        let pins = threads.iter().filter_map(|thread| Pin::of(*thread, anywhere)).collect();
        let failed = |source| JournalError::Write { folder: self.folder.clone(), source };
        self.make(What::Pins(OfPins { pins }), failed)
    }

    /// Restores the present CPUs and class of threads when the [`TemporaryChange`] is dropped.
    ///
    /// # Errors
    /// [`JournalError`]; then nothing is recorded.
    pub fn keep_threads(
        self: &Arc<Self>,
        threads: &[u32],
    ) -> Result<TemporaryChange, JournalError> {
        let pins = threads.iter().filter_map(|thread| Pin::whole(*thread)).collect();
        let failed = |source| JournalError::Write { folder: self.folder.clone(), source };
        self.make(What::Pins(OfPins { pins }), failed)
    }

    /// Records a change, then makes it.
    fn make(
        self: &Arc<Self>,
        what: What,
        failed: impl FnOnce(io::Error) -> JournalError,
    ) -> Result<TemporaryChange, JournalError> {
        let mut state = self.lock();
        let begun = JournalEntry { id: state.next_id, what };
        state.next_id += 1;
        self.write(&mut state, |file| file.begin(&begun))?;
        let mut entry = begun.clone();
        let mut made = entry.what.apply(&self.root).map_err(failed);
        state.entries.push(entry.clone());
        if made.is_ok() && entry != begun {
            made = self.write(&mut state, |file| file.begin(&entry));
        }
        let id = entry.id;
        if made.is_err() && entry.what.revoke(&self.root).is_ok() {
            let _ = end(&mut state, id);
        }
        made.map(|()| TemporaryChange { journal: Arc::clone(self), id })
    }

    /// Returns how many changes are to be undone.
    #[must_use]
    pub fn open_changes(&self) -> usize {
        self.lock().entries.len()
    }

    /// Returns the path of the journal, while it exists.
    fn path(&self) -> Option<PathBuf> {
        self.lock().file.as_ref().map(|file| file.path().to_owned())
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(
        &self,
        state: &mut State,
        line: impl FnOnce(&mut File) -> io::Result<()>,
    ) -> Result<(), JournalError> {
        let written = match &mut state.file {
            Some(file) => line(file),
            none => File::create(&self.folder).and_then(|file| line(none.insert(file))),
        };
        written
            .inspect_err(|_| tidy(state))
            .map_err(|source| JournalError::Write { folder: self.folder.clone(), source })
    }

    /// Undoes a change; returns the setting if it was left unchanged.
    fn undo(&self, id: u64) -> io::Result<Option<String>> {
        let mut state = self.lock();
        let Some(index) = state.entries.iter().position(|entry| entry.id == id) else {
            return Ok(None);
        };
        let entry = state.entries[index].clone();
        // The setting was changed again: undoing that restores the value before ours.
        let mut laters = state.entries[index + 1..].iter_mut();
        let heir = laters.position(|later| entry.what.bequeath(&mut later.what));
        let outcome = if let Some(heir) = heir {
            let later = state.entries[index + 1 + heir].clone();
            state.file.as_mut().map_or(Ok(()), |file| file.begin(&later))?;
            UndoOutcome::Nothing
        } else {
            let own = state.file.as_ref().map(File::path);
            layers::settled(&entry.what, &self.folder, own).undo(&self.root)?
        };
        end(&mut state, id)?;
        Ok((outcome == UndoOutcome::Left).then(|| entry.what.to_string()))
    }
}

/// Removes an undone change; the last one also removes the file.
fn end(state: &mut State, id: u64) -> io::Result<()> {
    state.entries.retain(|entry| entry.id != id);
    state.file.as_mut().map_or(Ok(()), |file| file.end(id))?;
    tidy(state);
    Ok(())
}

/// Removes a file without entries.
fn tidy(state: &mut State) {
    if state.entries.is_empty() {
        let _ = state.file.take().map(File::remove);
    }
}

/// A changed setting, until the value is dropped.
#[derive(Debug)]
#[must_use = "dropping it puts the setting back"]
pub struct TemporaryChange {
    journal: Arc<Journal>,
    id: u64,
}

impl TemporaryChange {
    /// Restores the setting now; after an error it stays in the journal, and the next start tries
    /// again. Returns the setting if it was left unchanged, because it was changed by others since
    /// or is in use.
    ///
    /// # Errors
    /// The system's error.
    pub fn undo(self) -> io::Result<Option<String>> {
        self.journal.undo(self.id)
    }
}

impl Drop for TemporaryChange {
    fn drop(&mut self) {
        // A failed undo stays in the journal, and the next start tries again.
        let _ = self.journal.undo(self.id);
    }
}

#[cfg(test)]
mod tests;
