//! Undoes the changes that dead processes left.

use super::entry::UndoOutcome;
use super::file::{File, SUFFIX, found, guard};
use super::layers;
use super::paths::Root;
use serde::Serialize;
use std::fs;
use std::io;
use std::path::Path;

/// The changes that dead processes left.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize)]
pub struct Recovered {
    /// The number of journals of dead processes.
    pub journals: usize,
    /// The restored settings: `veth0: the MTU (1500)`.
    pub undone: Vec<String>,
    /// The settings left unchanged: changed by others since, or in use.
    pub left: Vec<String>,
    /// The settings that could not be restored, and why. Their journals remain.
    pub failed: Vec<String>,
}

/// Undoes the changes that dead processes left in this user's journals ([`super::folder`]). Call it
/// before settings are read or changed; it is cheap without such journals.
///
/// # Errors
/// When the folder of journals cannot be read, or other users can write to it.
pub fn recover() -> io::Result<Recovered> {
    recover_in(&super::folder())
}

/// Undoes the same for the journals of one folder.
///
/// # Errors
/// When the folder cannot be read, or other users can write to it.
pub fn recover_in(folder: &Path) -> io::Result<Recovered> {
    recover_below(Path::new("/"), folder)
}

/// Undoes the same on a machine of files below a root folder.
///
/// # Errors
/// As [`recover_in`].
pub fn recover_below(root: &Path, folder: &Path) -> io::Result<Recovered> {
    let (root, mut recovered) = (Root::new(root), Recovered::default());
    let Some(listing) = found(fs::read_dir(folder))? else { return Ok(recovered) };
    guard(folder)?;
    for path in listing.flatten().map(|entry| entry.path()) {
        if path.extension().is_some_and(|extension| extension == SUFFIX) {
            follow(&root, &path, &mut recovered).unwrap_or_else(|error| {
                recovered.failed.push(format!("{}: {error}", path.display()))
            });
        }
    }
    Ok(recovered)
}

/// Follows one journal backwards.
fn follow(root: &Root, path: &Path, recovered: &mut Recovered) -> io::Result<()> {
    let folder = path.parent().unwrap_or(path);
    let Some(mut dead) = File::take(path)? else { return Ok(()) };
    recovered.journals += 1;
    let entries = dead.entries()?;
    let failures = recovered.failed.len();
    for entry in entries.iter().rev() {
        match layers::settled(&entry.what, folder, Some(path)).undo(root) {
            Ok(UndoOutcome::PutBack) => recovered.undone.push(entry.what.to_string()),
            Ok(UndoOutcome::Left) => recovered.left.push(entry.what.to_string()),
            Ok(UndoOutcome::Nothing) => {}
            Err(error) => recovered.failed.push(format!("{}: {error}", entry.what)),
        }
    }
    // After a failure it remains unchanged: undoing twice does no harm.
    if recovered.failed.len() == failures { dead.remove() } else { Ok(()) }
}
