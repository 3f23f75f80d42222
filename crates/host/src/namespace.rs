//! Network namespaces (network_namespaces(7)), by the inode of their file in /proc.

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::fs;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;

const HERE: &str = "/proc/thread-self/ns/net";

/// Returns the number of the namespace that the calling thread is in.
///
/// # Errors
/// Where `/proc` is missing.
pub fn current() -> io::Result<u64> {
    Ok(fs::metadata(HERE)?.ino())
}

/// Runs a job inside a namespace, on a new thread. Sockets and files of `/proc/thread-self/net`
/// that it opens stay there. Needs CAP_SYS_ADMIN.
///
/// # Errors
/// The error of setns(2), or the job's own.
pub fn inside<R: Send>(
    namespace: impl AsFd,
    job: impl FnOnce() -> io::Result<R> + Send,
) -> io::Result<R> {
    let namespace = namespace.as_fd();
    std::thread::scope(|scope| {
        let enter = || {
            move_into_link_name_space(namespace, Some(LinkNameSpaceType::Network))?;
            job()
        };
        scope.spawn(enter).join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}
