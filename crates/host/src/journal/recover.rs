//! Undoing what processes that died have left.

use super::file::{Dead, SUFFIX, guard};
use super::layers;
use super::outcome::UndoOutcome;
use serde::Serialize;
use std::fs;
use std::io;
use std::path::Path;

/// What was found of processes that died.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize)]
pub struct Recovered {
    /// Journals of dead processes.
    pub journals: usize,
    /// What was put back: `veth0: the MTU (1500)`.
    pub undone: Vec<String>,
    /// What was left as it is: somebody else has changed it since, or has come to rely on it.
    pub left: Vec<String>,
    /// What could not be, and why. Their journals are kept.
    pub failed: Vec<String>,
}

/// Undoes what processes that died have left in this user's journals ([`super::folder`]). To be
/// called before settings are looked at or changed; cheap when nobody died.
///
/// # Errors
/// When the folder of journals cannot be read, or others can write in it.
pub fn recover() -> io::Result<Recovered> {
    recover_in(&super::folder())
}

/// The same for the journals of one folder.
///
/// # Errors
/// When the folder cannot be read, or others can write in it.
pub fn recover_in(folder: &Path) -> io::Result<Recovered> {
    let mut recovered = Recovered::default();
    let listing = match fs::read_dir(folder) {
        Ok(listing) => listing,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(recovered),
        Err(error) => return Err(error),
    };
    guard(folder)?;
    for path in listing.flatten().map(|entry| entry.path()) {
        if path.extension().is_some_and(|extension| extension == SUFFIX) {
            follow(&path, &mut recovered).unwrap_or_else(|error| {
                recovered.failed.push(format!("{}: {error}", path.display()))
            });
        }
    }
    Ok(recovered)
}

/// Follows one journal backwards.
fn follow(path: &Path, recovered: &mut Recovered) -> io::Result<()> {
    let folder = path.parent().unwrap_or(path);
    let Some(mut dead) = Dead::take(path)? else { return Ok(()) };
    recovered.journals += 1;
    let entries = dead.entries()?;
    let failures = recovered.failed.len();
    for entry in entries.iter().rev() {
        match layers::settled(&entry.what, folder, Some(path)).undo() {
            Ok(UndoOutcome::PutBack) => recovered.undone.push(entry.what.to_string()),
            Ok(UndoOutcome::Left) => recovered.left.push(entry.what.to_string()),
            Ok(UndoOutcome::Nothing) => {}
            Err(error) => recovered.failed.push(format!("{}: {error}", entry.what)),
        }
    }
    // Kept as it is if anything failed: undoing twice does no harm.
    if recovered.failed.len() == failures { dead.remove() } else { Ok(()) }
}
