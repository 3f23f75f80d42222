//! The network namespace of a setting, identified by the inode of its file in /proc
//! (namespaces(7)).

pub(super) use crate::namespace::{current, inside};
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Returns the cookie of the namespace of the calling thread (SO_NETNS_COOKIE), unique until the
/// next boot; `None` before Linux 5.14.
pub(super) fn cookie() -> Option<u64> {
    use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
    let (family, kind) = (AddressFamily::INET, SocketType::DGRAM);
    let socket = socket_with(family, kind, SocketFlags::CLOEXEC, None).ok()?;
    let mut words = [0; 2];
    crate::socket::get(socket, libc::SOL_SOCKET, libc::SO_NETNS_COOKIE, &mut words).ok()?;
    Some(u64::from(words[0]) | u64::from(words[1]) << 32)
}

/// The place of a namespace.
pub(super) enum NamespaceFile {
    /// The calling thread is in it.
    Here,
    /// Another namespace, ready to be entered.
    There(OwnedFd),
    /// No process is in it any more.
    Gone,
    /// Only processes that this process may not examine may be in it.
    Unknown,
}

/// Searches for a namespace among those of all processes, and those with a name (ip-netns(8)).
pub(super) fn find(namespace: u64) -> io::Result<NamespaceFile> {
    if current()? == namespace {
        return Ok(NamespaceFile::Here);
    }
    let named = entries(Path::new("/run/netns"));
    let mut hidden = false;
    for path in named.into_iter().chain(processes()) {
        match fs::metadata(&path) {
            Ok(metadata) if metadata.ino() == namespace => {
                return Ok(NamespaceFile::There(fs::File::open(&path)?.into()));
            }
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => hidden = true,
            _ => {}
        }
    }
    // Processes that even root may not examine have more rights than this program had at the
    // change.
    let hidden = hidden && !rustix::process::geteuid().is_root();
    Ok(if hidden { NamespaceFile::Unknown } else { NamespaceFile::Gone })
}

/// Returns the namespace of every thread: they may differ within a process.
fn processes() -> impl Iterator<Item = PathBuf> {
    let all = entries(Path::new("/proc")).into_iter();
    let tasks = all.map(|process| process.join("task")).flat_map(|tasks| entries(&tasks));
    tasks.map(|task| task.join("ns/net"))
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).collect()
}
