//! System calls counted by the kernel: a perf counter on the trace event `raw_syscalls:sys_enter`.

use millstream_host::trace::TraceError;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::FromRawFd;
use std::path::Path;

/// Counts the system calls of the thread that opened it and of all threads started afterwards.
#[derive(Debug)]
pub struct SyscallTrace {
    counter: File,
}

/// `perf_event_attr` in its first published size (perf_event_open(2), `PERF_ATTR_SIZE_VER0`).
#[repr(C)]
#[derive(Default)]
struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup_events: u32,
    breakpoint_type: u32,
    breakpoint_address: u64,
}

/// The mount points of tracefs, on kernels since 4.1 and before.
const TRACEFS: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];
const PERF_TYPE_TRACEPOINT: u32 = 2;
/// Bit `inherit` of the flags.
const INHERIT: u64 = 1 << 1;
const PERF_FLAG_FD_CLOEXEC: libc::c_ulong = 8;

impl SyscallTrace {
    /// Opens the counter.
    ///
    /// # Errors
    /// The reason and the remedy: it needs rights (CAP_PERFMON) and a mounted tracefs.
    pub fn open() -> Result<Self, String> {
        let number = event_number(&TRACEFS.map(Path::new))?;
        Self::of_event(number).map_err(|error| refused("perf_event_open", &error))
    }

    fn of_event(number: u64) -> io::Result<Self> {
        let attributes = Attributes {
            kind: PERF_TYPE_TRACEPOINT,
            size: size_of::<Attributes>() as u32,
            config: number,
            flags: INHERIT,
            ..Attributes::default()
        };
        // SAFETY: the attributes live through the call and their size is in them; the kernel reads
        // no more than that.
        let fd = unsafe {
            libc::syscall(
                libc::SYS_perf_event_open,
                &raw const attributes,
                0 as libc::pid_t,
                -1 as libc::c_int,
                -1 as libc::c_int,
                PERF_FLAG_FD_CLOEXEC,
            )
        };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: a descriptor that the kernel just made, with no other owner.
        Ok(Self { counter: unsafe { File::from_raw_fd(fd as i32) } })
    }

    /// Returns the system calls so far, which include the calls of `count` itself.
    ///
    /// # Errors
    /// The system's.
    pub fn count(&mut self) -> io::Result<u64> {
        let mut bytes = [0; 8];
        self.counter.read_exact(&mut bytes)?;
        Ok(u64::from_ne_bytes(bytes))
    }
}

/// The reason why the kernel cannot count system calls here, and the remedy; `None` when it can.
#[must_use]
pub fn untraceable() -> Option<String> {
    SyscallTrace::open().err()
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
