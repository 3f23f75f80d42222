//! DPDK inside a process with other tasks, and next to processes that are killed.
//!
//! EAL can be started once in a process, so each test of its start runs this program again in a
//! [`role`]. Where the build is without DPDK, or something else is missing, a test reports that and
//! passes.

mod leavers;
mod manners;
mod parts;
mod role;
mod start;

use std::process::Command;

/// Returns the command of this program in a role; `None` where this build has no DPDK.
fn role(name: &str, argument: &str) -> Option<Command> {
    if !millstream_link::dpdk::AVAILABLE {
        eprintln!("skipped: this build is without DPDK");
        return None;
    }
    let mut command = Command::new(std::env::current_exe().expect("this program has a file"));
    command.args(["role::play", "--exact", "--nocapture", "--test-threads=1"]);
    command.env(role::NAME, name).env(role::ARGUMENT, argument);
    Some(command)
}

/// Runs a role to its end.
///
/// # Panics
/// If it fails: with its output.
fn run(name: &str, argument: &str) {
    let Some(mut command) = role(name, argument) else { return };
    let done = command.output().expect("this program can be started");
    let text = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{name}: {} {text}", done.status);
}

/// Returns a name for an object that two processes share.
fn shared_name() -> String {
    use std::sync::atomic::{AtomicU32, Ordering};
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let name = format!("ms-dpdk-{}-{number}", std::process::id());
    std::env::temp_dir().join(name).to_string_lossy().into_owned()
}
