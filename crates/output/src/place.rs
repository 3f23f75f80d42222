//! What a name is: a regular file, a device or FIFO, or an open descriptor.

use crate::{Existing, OutputError};
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use std::fs::{self, File};
use std::io;
use std::os::fd::{BorrowedFd, RawFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

/// As many links as Linux follows (path_resolution(7)).
const LINKS_MAX: usize = 40;

/// What a name leads to.
#[derive(Debug)]
pub(crate) enum Place {
    /// An open descriptor of this process.
    Descriptor(RawFd),
    /// A device, FIFO or socket, or anything else that is opened and not replaced.
    Special(PathBuf),
    /// A regular file, which may be absent: the name behind all links, and the old file.
    Regular(PathBuf, Option<fs::Metadata>),
}

/// Follows `path`; `standard` is the descriptor that `-` stands for.
pub(crate) fn follow(path: &Path, standard: RawFd) -> Result<Place, OutputError> {
    let fail = |source: io::Error| OutputError::of(path, source);
    if path == Path::new("-") {
        return Ok(Place::Descriptor(standard));
    }
    let mut at = path.to_owned();
    for _ in 0..LINKS_MAX {
        if let Some(number) = descriptor_of(&at) {
            return Ok(Place::Descriptor(number));
        }
        let found = match fs::symlink_metadata(&at) {
            Ok(found) => found,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(Place::Regular(at, None));
            }
            Err(error) => return Err(fail(error)),
        };
        let kind = found.file_type();
        if kind.is_symlink() {
            let target = fs::read_link(&at).map_err(fail)?;
            at = at.parent().unwrap_or(Path::new("/")).join(target);
        } else if kind.is_dir() {
            return Err(fail(io::ErrorKind::IsADirectory.into()));
        } else if kind.is_file() {
            return Ok(Place::Regular(at, Some(found)));
        } else if kind.is_socket() {
            let reason = "it is a socket, which a program must connect to: use a FIFO or a pipe";
            return Err(fail(io::Error::new(io::ErrorKind::Unsupported, reason)));
        } else {
            return Ok(Place::Special(at));
        }
    }
    Err(fail(rustix::io::Errno::LOOP.into()))
}

/// Returns the descriptor that a name stands for, also where `/proc` is missing.
fn descriptor_of(path: &Path) -> Option<RawFd> {
    let text = path.to_str()?;
    match text {
        "/dev/stdin" => return Some(0),
        "/dev/stdout" => return Some(1),
        "/dev/stderr" => return Some(2),
        _ => {}
    }
    let own = format!("/proc/{}/fd/", std::process::id());
    let folders = ["/dev/fd/", "/proc/self/fd/", "/proc/thread-self/fd/", &own];
    let number = folders.iter().find_map(|folder| text.strip_prefix(folder))?;
    let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    number.parse().ok().filter(|_| is_number)
}

/// Returns a file of the descriptor's open file, with the same position.
pub(crate) fn duplicate(number: RawFd) -> io::Result<File> {
    // SAFETY: fcntl(2) takes any number that is not -1, and refuses one that is not open; the
    // borrow ends with the call.
    let borrowed = unsafe { BorrowedFd::borrow_raw(number) };
    Ok(File::from(rustix::io::fcntl_dupfd_cloexec(borrowed, 3)?))
}

/// Opens a file to read: `-` is standard input, and other names of descriptors are those.
///
/// # Errors
/// The system's.
pub fn open_input(path: &Path) -> io::Result<File> {
    match follow(path, 0) {
        Ok(Place::Descriptor(number)) => duplicate(number),
        _ => File::open(path),
    }
}

/// Whether `path` leads to this process's standard output: by a name such as `-` or `/dev/stdout`,
/// or because it is the same file, pipe or terminal. `/dev/null` does not count: it has no reader.
#[must_use]
pub fn names_standard_output(path: &Path) -> bool {
    match follow(path, 1) {
        Ok(Place::Descriptor(number)) => number == 1,
        Ok(Place::Special(at) | Place::Regular(at, Some(_))) => {
            let own = duplicate(1).and_then(|file| file.metadata()).ok();
            let (Some(own), Ok(found)) = (own, fs::metadata(&at)) else { return false };
            (own.dev(), own.ino()) == (found.dev(), found.ino()) && at != Path::new("/dev/null")
        }
        _ => false,
    }
}

/// Whether `path` is, or would become, a regular file of its own.
#[must_use]
pub fn is_regular(path: &Path) -> bool {
    matches!(follow(path, 1), Ok(Place::Regular(..)))
}

/// Checks, without creating anything, whether an [`OutputFile`](crate::OutputFile) can be created:
/// before a command opens a radio, for example.
///
/// # Errors
/// As [`OutputFile::create`](crate::OutputFile::create), except for what only creating it shows.
pub fn check(path: &Path, existing: Existing) -> Result<(), OutputError> {
    match follow(path, 1)? {
        Place::Regular(at, found) => regular(path, &at, found.as_ref(), existing),
        Place::Descriptor(_) | Place::Special(_) => Ok(()),
    }
}

/// Whether another file handle has locked the regular file of this name: something reads or writes
/// it.
#[must_use]
pub fn is_in_use(path: &Path) -> bool {
    let Ok(Place::Regular(at, Some(_))) = follow(path, 1) else { return false };
    File::options().write(true).open(at).is_ok_and(|file| lock(&file).is_err())
}

/// Whether a regular file may be written at `at`.
pub(crate) fn regular(
    path: &Path,
    at: &Path,
    found: Option<&fs::Metadata>,
    existing: Existing,
) -> Result<(), OutputError> {
    let fail = |source: io::Error| OutputError::of(path, source);
    if is_place_of_devices(at) {
        return Err(OutputError::NoDevice { path: path.to_owned() });
    }
    let Some(found) = found else {
        let folder = at.parent().filter(|folder| !folder.as_os_str().is_empty());
        return match fs::metadata(folder.unwrap_or(Path::new("."))) {
            Err(error) => Err(fail(error)),
            Ok(_) => Ok(()),
        };
    };
    if existing == Existing::Refuse && found.len() > 0 {
        return Err(OutputError::Exists { path: path.to_owned() });
    }
    // A protected file refuses this, although renaming over it needs rights of the folder only.
    let old = File::options().write(true).open(at).map_err(fail)?;
    lock(&old).map_err(fail)
}

/// Whether regular files in this folder are mistakes: below /dev, but for memory that is shared.
pub(crate) fn is_place_of_devices(at: &Path) -> bool {
    let Some(Ok(folder)) = at.parent().map(fs::canonicalize) else { return false };
    let allowed = ["/dev/shm", "/dev/mqueue", "/dev/hugepages"];
    folder.starts_with("/dev") && !allowed.iter().any(|place| folder.starts_with(place))
}

/// Locks the file until it is closed, unless it is locked already.
pub(crate) fn lock(file: &File) -> io::Result<()> {
    match flock(file, FlockOperation::NonBlockingLockExclusive) {
        Err(Errno::WOULDBLOCK) => Err(io::ErrorKind::ResourceBusy.into()),
        // Some file systems have no locks: then the file cannot be locked already.
        Err(_) | Ok(()) => Ok(()),
    }
}
