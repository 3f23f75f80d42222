//! System calls counted by the kernel: a perf counter on the trace event `raw_syscalls:sys_enter`.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::FromRawFd;

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

const PERF_TYPE_TRACEPOINT: u32 = 2;
/// Bit `inherit` of the flags.
const INHERIT: u64 = 1 << 1;
const PERF_FLAG_FD_CLOEXEC: libc::c_ulong = 8;

impl SyscallTrace {
    /// Opens the counter.
    ///
    /// # Errors
    /// The system's: without rights (CAP_PERFMON) or without tracefs there is no counter.
    pub fn open() -> io::Result<Self> {
        let attributes = Attributes {
            kind: PERF_TYPE_TRACEPOINT,
            size: size_of::<Attributes>() as u32,
            config: event_number()?,
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
        // SAFETY: a descriptor that the kernel just made, owned by nobody else.
        Ok(Self { counter: unsafe { File::from_raw_fd(fd as i32) } })
    }

    /// System calls so far, this one not counted twice: the calls that ask are part of it.
    ///
    /// # Errors
    /// The system's.
    pub fn count(&mut self) -> io::Result<u64> {
        let mut bytes = [0; 8];
        self.counter.read_exact(&mut bytes)?;
        Ok(u64::from_ne_bytes(bytes))
    }
}

fn event_number() -> io::Result<u64> {
    let folders = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];
    let path = |folder| format!("{folder}/events/raw_syscalls/sys_enter/id");
    let text = std::fs::read_to_string(path(folders[0]))
        .or_else(|_| std::fs::read_to_string(path(folders[1])))?;
    text.trim().parse().map_err(|_| io::ErrorKind::InvalidData.into())
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
}
