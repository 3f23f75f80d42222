//! What the programs at the kernel's tracepoints share: loading them, and why that fails.
//!
//! They are programs of kind "tracing" with the tracepoint's own types (`BPF_TRACE_RAW_TP`, Linux
//! 5.5), because these need no tracefs, may read members of the kernel's structures directly, and
//! get what the classic tracepoint does not show: the packet, the threads.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use millstream_host::bpf::{self, BtfError, Insn, KernelPoint, LoadOptions, MapKind, ProgramPlace};
use millstream_link::rights::raise_lockable;

/// The reason why a program cannot watch the kernel.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProbeError {
    /// The kernel's types are not what the program needs.
    #[error(transparent)]
    Types(#[from] BtfError),
    /// The process does not have the rights.
    #[error(
        "a program at the kernel's tracepoints needs {} ({source}): run it as root, or give the \
         file the rights: sudo setcap cap_bpf,cap_perfmon+ep FILE",
        missing.join(" and ")
    )]
    Rights {
        /// The capabilities that this thread does not have.
        missing: Vec<&'static str>,
        /// The system's error.
        source: io::Error,
    },
    /// It has the rights, and the kernel does not let it use them.
    #[error(
        "the kernel lets nobody here load a program at its tracepoints ({0}): outside of user \
         namespaces and containers, without lockdown, and, before Linux 5.11, with more lockable \
         memory (ulimit -l) it may"
    )]
    Forbidden(#[source] io::Error),
    /// The kernel refused it for another reason.
    #[error("the kernel refused a program at its tracepoints: {0}")]
    Refused(#[source] io::Error),
}

impl From<io::Error> for ProbeError {
    fn from(source: io::Error) -> Self {
        // EACCES comes from the verifier.
        match (source.raw_os_error(), missing()) {
            (Some(libc::EPERM), missing) if missing.is_empty() => Self::Forbidden(source),
            (Some(libc::EPERM), missing) => Self::Rights { missing, source },
            _ => Self::Refused(source),
        }
    }
}

/// Lists the capabilities that this thread needs and does not have (capabilities(7)).
fn missing() -> Vec<&'static str> {
    /// Bits of the set: CAP_SYS_ADMIN stands for both others.
    const ADMIN: u32 = 21;
    let held = millstream_cpu::proc::capabilities(Path::new("/proc/thread-self")).unwrap_or(0);
    let lacks = |bit: u32| held & (1 << bit | 1 << ADMIN) == 0;
    let needed = [(39, "CAP_BPF"), (38, "CAP_PERFMON")];
    needed.iter().filter(|(bit, _)| lacks(*bit)).map(|(_, name)| *name).collect()
}

/// Creates a map. Before Linux 5.11 its memory counts as locked.
pub(crate) fn create_map(name: &str, kind: MapKind, bytes: usize) -> io::Result<OwnedFd> {
    // Where the limit may not be raised it may still be high enough.
    let _ = raise_lockable(None, 2 * bytes as u64);
    bpf::create_map(name, kind)
}

/// Loads a program and attaches it to a tracepoint, where it stays until the result is closed.
pub(crate) fn attach(name: &str, point: KernelPoint, code: &[Insn]) -> io::Result<OwnedFd> {
    let place = ProgramPlace::Tracepoint(point.id);
    let program = bpf::load(code, LoadOptions { name, place })?;
    bpf::attach_tracepoint(program.as_fd())
}

/// What is to be added to `CLOCK_MONOTONIC`, the programs' clock, to get `CLOCK_REALTIME`.
pub(crate) fn real_minus_monotonic_ns() -> i64 {
    use rustix::time::{ClockId, clock_gettime};
    let now = |clock| {
        let time = clock_gettime(clock);
        time.tv_sec * 1_000_000_000 + time.tv_nsec
    };
    now(ClockId::Realtime) - now(ClockId::Monotonic)
}
