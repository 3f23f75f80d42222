//! System calls counted by the kernel: a perf counter on the trace event `raw_syscalls:sys_enter`.

use millstream_cpu::counters::{CountedEvent, ThreadCounter};
use millstream_host::trace::TraceError;
use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_change};
use rustix::thread::{UnshareFlags, unshare_unsafe};
use std::io;
use std::path::Path;

/// Counts the system calls of the thread that opened it and of all threads started afterwards.
#[derive(Debug)]
pub struct SyscallTrace {
    counter: ThreadCounter,
}

/// The mount points of tracefs, on kernels since 4.1 and before.
const TRACEFS: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];

impl SyscallTrace {
    /// Opens the counter.
    ///
    /// # Errors
    /// The reason and the remedy: it needs rights (CAP_PERFMON) and a mounted tracefs.
    pub fn open() -> Result<Self, String> {
        let number = number_of_calls()?;
        let counter = ThreadCounter::open(CountedEvent::Trace(number), 0);
        Ok(Self { counter: counter.map_err(|error| refused("perf_event_open", &error))? })
    }

    /// Returns the system calls so far, which include the calls of `count` itself.
    ///
    /// # Errors
    /// The system's.
    pub fn count(&mut self) -> io::Result<u64> {
        self.counter.read()
    }
}

/// The reason why the kernel cannot count system calls here, and the remedy; `None` when it can.
#[must_use]
pub fn untraceable() -> Option<String> {
    SyscallTrace::open().err()
}

/// The number of the event. Where no tracefs is mounted, a thread mounts one for itself: nobody
/// else sees it, and it ends with the thread.
fn number_of_calls() -> Result<u64, String> {
    let look = || event_number(&TRACEFS.map(Path::new));
    look().or_else(|why| {
        let own = std::thread::spawn(move || own_tracefs().ok().and_then(|()| look().ok()));
        own.join().ok().flatten().ok_or(why)
    })
}

/// Mounts a tracefs that only the calling thread sees.
fn own_tracefs() -> rustix::io::Result<()> {
    // SAFETY: the mounts and the working directory of this thread become its own; descriptors and
    // files stay as they are.
    unsafe { unshare_unsafe(UnshareFlags::NEWNS)? };
    mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)?;
    mount("tracefs", TRACEFS[0], "tracefs", MountFlags::empty(), None)
}

/// The number of the event in the tracefs at one of these mount points.
fn event_number(mounts: &[&Path]) -> Result<u64, String> {
    let mut worst = None;
    for mount in mounts {
        let path = mount.join("events/raw_syscalls/sys_enter/id");
        match std::fs::read_to_string(&path) {
            Ok(text) => {
                let wrong = |_| format!("{} holds no number: `{}`", path.display(), text.trim());
                return text.trim().parse().map_err(wrong);
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => {
                worst.get_or_insert_with(|| refused(&path.display().to_string(), &error));
            }
        }
    }
    Err(worst.unwrap_or_else(|| TraceError::NotMounted.to_string()))
}

fn refused(what: &str, error: &io::Error) -> String {
    let advice = match error.kind() {
        io::ErrorKind::PermissionDenied => "; it needs root",
        _ => "",
    };
    format!("{what}: {error}{advice}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_call_of_this_thread_and_its_children_counts() {
        let Ok(mut trace) = SyscallTrace::open() else {
            eprintln!("skipped: the kernel's trace events cannot be had here");
            return;
        };
        let call = || {
            // SAFETY: plain system call without arguments.
            unsafe { libc::syscall(libc::SYS_getppid) };
        };
        let before = trace.count().unwrap();
        (0..1000).for_each(|_| call());
        let between = trace.count().unwrap();
        assert!((1000..1010).contains(&(between - before)), "{}", between - before);
        std::thread::spawn(move || (0..1000).for_each(|_| call())).join().unwrap();
        assert!(trace.count().unwrap() - between >= 1000);
    }

    #[test]
    fn without_tracefs_it_says_how_to_mount_it() {
        let folder = tempfile::tempdir().unwrap();
        let (none, one) = (folder.path().join("none"), folder.path().join("one"));
        let error = event_number(&[&none, &one]).unwrap_err();
        assert!(error.contains("mount -t tracefs none /sys/kernel/tracing"), "{error}");
        let event = one.join("events/raw_syscalls/sys_enter");
        std::fs::create_dir_all(&event).unwrap();
        std::fs::write(event.join("id"), "353\n").unwrap();
        assert_eq!(event_number(&[&none, &one]), Ok(353));
        std::fs::write(event.join("id"), "x").unwrap();
        assert!(event_number(&[&none, &one]).unwrap_err().contains("holds no number: `x`"));
        let denied = refused("perf_event_open", &io::ErrorKind::PermissionDenied.into());
        assert!(denied.ends_with("it needs root"), "{denied}");
    }
}
