//! The incomplete file, `NAME.part`.

use crate::OutputError;
use crate::place::lock;
use rustix::fs::{CWD, OFlags, RenameFlags, renameat_with};
use std::fs::{self, File, Metadata};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// The most incomplete files of one name that are kept.
const KEPT_MAX: u32 = 100_000;
/// The most that [`take_set_aside`] remembers.
const REMEMBERED_MAX: usize = 100;

static SET_ASIDE: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Returns the name that the file at `path` has until it is complete.
#[must_use]
pub fn part_of(path: &Path) -> PathBuf {
    with_ending(path, ".part")
}

/// Returns the name that the incomplete file at `path`, also one that was kept, has when it is
/// complete; `None` for a name that is no part's.
#[must_use]
pub fn whole_of(path: &Path) -> Option<PathBuf> {
    let is_number = |end: &str| end.bytes().all(|byte| byte.is_ascii_digit());
    let kept = path.extension().and_then(|end| end.to_str()).is_some_and(is_number);
    let part = if kept { path.with_extension("") } else { path.to_owned() };
    (part.extension()? == "part").then(|| part.with_extension(""))
}

/// Returns the new names of incomplete files that this process has found and kept, since the last
/// call: a program should say so.
#[must_use]
pub fn take_set_aside() -> Vec<PathBuf> {
    std::mem::take(&mut SET_ASIDE.lock().unwrap_or_else(|poisoned| poisoned.into_inner()))
}

/// Creates the incomplete file of `at`, empty and locked. An abandoned one gets another name.
pub(crate) fn create(path: &Path, at: &Path) -> Result<(PathBuf, File), OutputError> {
    let fail = |source: io::Error| OutputError::of(path, source);
    let part = part_of(at);
    loop {
        match File::options().read(true).write(true).create_new(true).open(&part) {
            Ok(file) => {
                lock(&file).map_err(fail)?;
                // Until it was locked, another program may have taken it for an abandoned one.
                if is_named(&file, &part) {
                    return Ok((part, file));
                }
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                set_aside(path, &part)?;
            }
            Err(error) => return Err(fail(error)),
        }
    }
}

/// Gives an abandoned incomplete file a name of its own; an empty one is removed.
fn set_aside(path: &Path, part: &Path) -> Result<(), OutputError> {
    let fail = |source: io::Error| OutputError::of(path, source);
    let gone = |error: &io::Error| error.kind() == io::ErrorKind::NotFound;
    match fs::symlink_metadata(part) {
        Err(error) if gone(&error) => return Ok(()),
        Err(error) => return Err(fail(error)),
        Ok(found) if !found.is_file() => {
            let (path, part) = (path.to_owned(), part.to_owned());
            return Err(OutputError::PartTaken { path, part });
        }
        Ok(_) => {}
    }
    let flags = i32::try_from((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits()).unwrap_or(0);
    let old = match File::options().write(true).custom_flags(flags).open(part) {
        Err(error) if gone(&error) => return Ok(()),
        old => old.map_err(fail)?,
    };
    lock(&old).map_err(fail)?;
    if !is_named(&old, part) {
        return Ok(());
    }
    if old.metadata().map_err(fail)?.len() == 0 {
        return fs::remove_file(part).map_err(fail);
    }
    for number in 1..KEPT_MAX {
        let kept = with_ending(part, &format!(".{number}"));
        match rename_new(part, &kept) {
            Ok(()) => {
                let mut list = SET_ASIDE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
                if list.len() < REMEMBERED_MAX {
                    list.push(kept);
                }
                return Ok(());
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(fail(error)),
        }
    }
    Err(fail(io::ErrorKind::AlreadyExists.into()))
}

/// Renames without replacing anything.
pub(crate) fn rename_new(from: &Path, to: &Path) -> io::Result<()> {
    match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        // Not every file system can do that in one step.
        Err(rustix::io::Errno::INVAL | rustix::io::Errno::NOSYS) => {
            if fs::symlink_metadata(to).is_ok() {
                return Err(io::ErrorKind::AlreadyExists.into());
            }
            fs::rename(from, to)
        }
        renamed => Ok(renamed?),
    }
}

/// Whether `file` has the name `path`.
pub(crate) fn is_named(file: &File, path: &Path) -> bool {
    let (Ok(own), Ok(found)) = (file.metadata(), fs::symlink_metadata(path)) else { return false };
    (own.dev(), own.ino()) == (found.dev(), found.ino())
}

/// Gives a new file the mode of the old one, and its owner and group as far as that is allowed.
pub(crate) fn inherit(file: &File, old: &Metadata) -> io::Result<()> {
    use rustix::fs::{Gid, Mode, Uid, fchmod, fchown};
    let (user, group) = (Uid::from_raw(old.uid()), Gid::from_raw(old.gid()));
    let new = file.metadata()?;
    if (new.uid(), new.gid()) != (old.uid(), old.gid())
        && fchown(file, Some(user), Some(group)).is_err()
    {
        // Only root may give a file away; a group of one's own is allowed.
        let _ = fchown(file, None, Some(group));
    }
    Ok(fchmod(file, Mode::from_raw_mode(old.mode() & 0o777))?)
}

/// Appends to the name of a file.
pub(crate) fn with_ending(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    name.into()
}
