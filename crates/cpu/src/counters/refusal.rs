//! The reason why a counter cannot be had, with the remedy.

use super::CountedEvent;
use crate::proc::value;
use std::fmt;
use std::io;
use std::path::Path;

/// The reason why the kernel does not open a counter.
#[derive(Debug)]
#[non_exhaustive]
pub enum CounterRefusal {
    /// The processor, or the virtual one, has no performance counters (PMU) that the kernel knows.
    NoUnit {
        /// Whether a hypervisor is between.
        virtual_machine: bool,
    },
    /// The kernel allows it only to others.
    NotAllowed {
        /// The value of `kernel.perf_event_paranoid`, where it can be read.
        paranoid: Option<i32>,
    },
    /// The kernel has no such interface, or a container hides it.
    NoInterface,
    /// The process has no descriptor left for it.
    NoDescriptor,
    /// Anything else.
    Other(io::Error),
}

impl CounterRefusal {
    /// Explains the error of [`ThreadCounter::open`](super::ThreadCounter::open) on this machine.
    #[must_use]
    pub fn of_this_machine(event: CountedEvent, error: io::Error) -> Self {
        Self::of(event, error, Path::new("/"))
    }

    fn of(event: CountedEvent, error: io::Error, root: &Path) -> Self {
        let read = |path| std::fs::read_to_string(root.join(path)).ok();
        match error.raw_os_error() {
            // Without a unit, some kernels do not know the event and others cannot count it.
            Some(libc::ENOENT | libc::EOPNOTSUPP | libc::ENODEV | libc::EINVAL)
                if event.is_hardware() =>
            {
                let cpus = read("proc/cpuinfo").unwrap_or_default();
                let flags = value(&cpus, "flags").unwrap_or_default();
                let virtual_machine = flags.split(' ').any(|flag| flag == "hypervisor");
                Self::NoUnit { virtual_machine }
            }
            Some(libc::EACCES | libc::EPERM) => {
                let paranoid = read("proc/sys/kernel/perf_event_paranoid");
                Self::NotAllowed { paranoid: paranoid.and_then(|text| text.trim().parse().ok()) }
            }
            Some(libc::ENOSYS) => Self::NoInterface,
            Some(libc::EMFILE | libc::ENFILE) => Self::NoDescriptor,
            _ => Self::Other(error),
        }
    }
}

impl fmt::Display for CounterRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoUnit { virtual_machine: true } => f.write_str(
                "this virtual machine has no performance counters (PMU); use a machine without a \
                 hypervisor, or let the hypervisor pass them on (QEMU with KVM: -cpu host,pmu=on)",
            ),
            Self::NoUnit { virtual_machine: false } => f.write_str(
                "this kernel knows no performance counters (PMU) of this processor; use a kernel \
                 with a driver for them",
            ),
            // Up to 2 the kernel lets everybody count their own programs: another one forbids it.
            Self::NotAllowed { paranoid: Some(value @ ..=2) } => write!(
                f,
                "a container or a security module forbids it (perf_event_paranoid={value} would \
                 allow it); give the container the capability CAP_PERFMON"
            ),
            Self::NotAllowed { paranoid } => {
                f.write_str("the kernel allows it only to root (perf_event_paranoid")?;
                match paranoid {
                    Some(value) => write!(f, "={value}")?,
                    None => f.write_str(" cannot be read")?,
                }
                f.write_str("); run the command as root, or sysctl kernel.perf_event_paranoid=2")
            }
            Self::NoInterface => f.write_str(
                "there is no perf_event_open here; use a kernel with CONFIG_PERF_EVENTS, outside \
                 of containers that hide it",
            ),
            Self::NoDescriptor => {
                f.write_str("too many files are open; raise the limit (ulimit -n)")
            }
            Self::Other(error) => write!(f, "perf_event_open: {error}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(event: CountedEvent, errno: i32, files: &[(&str, &str)]) -> String {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        CounterRefusal::of(event, io::Error::from_raw_os_error(errno), root.path()).to_string()
    }

    #[test]
    fn each_refusal_names_the_reason_and_the_next_step() {
        let guest = [("proc/cpuinfo", "flags\t\t: fpu hypervisor sse\n")];
        let plain = [("proc/cpuinfo", "flags\t\t: fpu sse\n")];
        let paranoid = |value| [("proc/sys/kernel/perf_event_paranoid", value)];
        let misses = CountedEvent::LastLevelMisses;
        for (errno, files, reason, step) in [
            (libc::ENOENT, &guest, "virtual machine has no performance counters", "pmu=on"),
            (libc::EOPNOTSUPP, &plain, "of this processor", "use a kernel"),
            (libc::EACCES, &paranoid("4\n"), "(perf_event_paranoid=4)", "run the command as root"),
            (libc::EPERM, &paranoid("2\n"), "a container", "CAP_PERFMON"),
            (libc::EACCES, &plain, "paranoid cannot be read", "sysctl"),
            (libc::ENOSYS, &plain, "no perf_event_open", "CONFIG_PERF_EVENTS"),
            (libc::EMFILE, &plain, "too many files", "ulimit -n"),
        ] {
            let words = words(misses, errno, files);
            assert!(words.contains(reason) && words.contains(step), "{errno}: {words}");
        }
        // What the kernel itself counts needs no unit.
        assert!(
            words(CountedEvent::PageFaults, libc::ENOENT, &guest).contains("perf_event_open: ")
        );
    }
}
