//! The network namespaces of this host, and work inside one (network_namespaces(7)).

use millstream_cpu::folders;
use millstream_host::namespace::{current, inside};
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// A network namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NetworkNamespace {
    /// Its number: the inode of its file.
    pub number: u64,
    /// A process in it; `None` for that of this process.
    pub pid: Option<u32>,
}

/// Returns the network namespaces that this process may see, its own first.
#[must_use]
pub fn namespaces() -> Vec<NetworkNamespace> {
    let own = current().unwrap_or(0);
    let mut found = vec![NetworkNamespace { number: own, pid: None }];
    for pid in folders::numbers(Path::new("/proc")) {
        // One that has ended, or belongs to somebody else, is left out.
        let Ok(file) = fs::metadata(format!("/proc/{pid}/ns/net")) else { continue };
        if found.iter().all(|known| known.number != file.ino()) {
            found.push(NetworkNamespace { number: file.ino(), pid: Some(pid) });
        }
    }
    found
}

/// Runs a job in the network namespace of a process, or in ours: what it opens there (sockets,
/// files of `/proc/thread-self/net`) stays there. Another namespace than ours needs CAP_SYS_ADMIN.
///
/// # Errors
/// `NotFound` where the process has ended; `PermissionDenied`, with what is missing.
pub fn within<T: Send>(pid: Option<u32>, job: impl FnOnce() -> T + Send) -> io::Result<T> {
    let Some(pid) = pid else { return Ok(job()) };
    let explain = |error: io::Error| {
        let what = match error.kind() {
            io::ErrorKind::NotFound => format!("there is no process {pid}"),
            _ => format!("cannot see the network of process {pid} ({error}): run with sudo"),
        };
        io::Error::new(error.kind(), what)
    };
    let file = File::open(format!("/proc/{pid}/ns/net")).map_err(explain)?;
    if file.metadata()?.ino() == current()? {
        return Ok(job());
    }
    inside(&file, || Ok(job())).map_err(|error| {
        let what = format!(
            "process {pid} has a network of its own, as in a container, and this program may not \
             enter it ({error}): run with sudo, or with the capability CAP_SYS_ADMIN"
        );
        io::Error::new(error.kind(), what)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use millstream_testkit::netns::Namespace;

    #[test]
    fn the_namespace_of_a_process_is_listed_and_can_be_entered() {
        let Some(other) = Namespace::alone() else { return };
        let mut child = other.command("sleep").arg("60").spawn().unwrap();
        let number = other.run(|| current().unwrap());
        let listed = namespaces();
        let there = within(Some(child.id()), || current().unwrap());
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(listed[0], NetworkNamespace { number: current().unwrap(), pid: None });
        assert!(listed.iter().any(|one| one.number == number && one.pid.is_some()), "{listed:?}");
        assert_eq!(there.unwrap(), number);
    }

    #[test]
    fn our_own_needs_no_rights_and_a_process_that_has_ended_is_named() {
        let own = std::process::id();
        let here = std::thread::current().id();
        assert_eq!(within(Some(own), || std::thread::current().id()).unwrap(), here);
        let error = within(Some(u32::MAX), || ()).unwrap_err().to_string();
        assert_eq!(error, format!("there is no process {}", u32::MAX));
    }
}
