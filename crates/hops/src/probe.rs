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
         file the rights: sudo setcap cap_net_raw,cap_bpf,cap_perfmon+ep FILE",
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
    /// A program would harm this kernel, or what it tells would be wrong here.
    #[error("{0}")]
    Unfit(&'static str),
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
    match bpf::create_map(name, kind) {
        Err(error) if error.raw_os_error() == Some(libc::EPERM) => {
            // Only then: the programs that this one starts inherit the limit.
            let _ = raise_lockable(None, 2 * bytes as u64);
            bpf::create_map(name, kind)
        }
        created => created,
    }
}

/// Checks that the kernel's ring of records may be written where threads are switched: before Linux
/// 6.12 its lock may sleep on a kernel with PREEMPT_RT, which these places must not.
pub(crate) fn check_kernel(root: &Path) -> Result<(), ProbeError> {
    let read = |name: &str| {
        let path = root.join("proc/sys/kernel").join(name);
        std::fs::read_to_string(path).unwrap_or_default()
    };
    let release = read("osrelease");
    let mut numbers = release.split(['.', '-']).map(|part| part.trim().parse::<u32>());
    let version = (numbers.next(), numbers.next());
    let is_old =
        !matches!(version, (Some(Ok(major)), Some(Ok(minor))) if (major, minor) >= (6, 12));
    if is_old && read("version").contains("PREEMPT_RT") {
        return Err(ProbeError::Unfit(
            "programs at the kernel's tracepoints may stop a kernel with PREEMPT_RT before Linux \
             6.12, so none is loaded",
        ));
    }
    Ok(())
}

/// Loads a program and attaches it to a tracepoint, where it stays until the result is closed.
pub(crate) fn attach(name: &str, point: KernelPoint, code: &[Insn]) -> Result<OwnedFd, ProbeError> {
    check_kernel(Path::new("/"))?;
    let place = ProgramPlace::Tracepoint(point.id);
    let program = bpf::load(code, LoadOptions { name, place })?;
    Ok(bpf::attach_tracepoint(program.as_fd())?)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_that_a_program_could_stop_is_refused() {
        let root = std::env::temp_dir().join(format!("kernel-{}", std::process::id()));
        let folder = root.join("proc/sys/kernel");
        std::fs::create_dir_all(&folder).unwrap();
        for (release, version, fits) in [
            ("5.10.0-30-rt-amd64", "#1 SMP PREEMPT_RT Debian", false),
            ("6.11.2", "#1 SMP PREEMPT_RT", false),
            ("6.12.0", "#1 SMP PREEMPT_RT", true),
            ("7.0", "#1 SMP PREEMPT_RT", true),
            ("5.10.0", "#1 SMP PREEMPT_DYNAMIC", true),
            ("", "#1 SMP PREEMPT_RT", false),
        ] {
            std::fs::write(folder.join("osrelease"), release).unwrap();
            std::fs::write(folder.join("version"), version).unwrap();
            assert_eq!(check_kernel(&root).is_ok(), fits, "{release} {version}");
        }
        std::fs::remove_dir_all(&root).unwrap();
    }
}
