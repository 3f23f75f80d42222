//! Names for what a process makes in a file system of the kernel, which containers may share.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::sync::atomic::{AtomicU32, Ordering};

/// Returns a name that no other process gives: `millstreamWHAT-NAMESPACE-PID-NUMBER`. Process
/// numbers repeat from one container to the next; together with the number of their namespace
/// (pid_namespaces(7)) they are unique.
pub(crate) fn name(what: &str) -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    format!("millstream{what}-{}-{}-{number}", pid_namespace(), std::process::id())
}

/// Returns the number of our PID namespace; 0 where `/proc` does not tell.
pub(crate) fn pid_namespace() -> u64 {
    fs::metadata("/proc/self/ns/pid").map_or(0, |namespace| namespace.ino())
}
