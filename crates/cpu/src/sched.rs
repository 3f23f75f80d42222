//! Scheduling classes of threads (sched(7)), and the reasons for which the kernel refuses one.

use rustix::process::{Resource, getrlimit};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// A scheduling class with its priority.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Class {
    /// The ordinary class: shares the CPU with all threads.
    #[default]
    Other,
    /// Real time, priority 1 to 99: runs until it waits or a thread of higher priority is ready.
    Fifo(u8),
    /// The same, in rotation with threads of the same priority.
    RoundRobin(u8),
}

impl Class {
    fn policy(self) -> (i32, u8) {
        match self {
            Self::Other => (libc::SCHED_OTHER, 0),
            Self::Fifo(priority) => (libc::SCHED_FIFO, priority),
            Self::RoundRobin(priority) => (libc::SCHED_RR, priority),
        }
    }

    /// Returns its priority; 0 for the ordinary class.
    #[must_use]
    pub fn priority(self) -> u8 {
        self.policy().1
    }

    /// Returns the class with the kernel's number; `None` for the rarer ones (idle, batch,
    /// deadline).
    #[must_use]
    pub fn from_policy(policy: i32, priority: u8) -> Option<Self> {
        match policy {
            libc::SCHED_OTHER => Some(Self::Other),
            libc::SCHED_FIFO => Some(Self::Fifo(priority)),
            libc::SCHED_RR => Some(Self::RoundRobin(priority)),
            _ => None,
        }
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Other => f.write_str("other"),
            Self::Fifo(priority) => write!(f, "fifo:{priority}"),
            Self::RoundRobin(priority) => write!(f, "rr:{priority}"),
        }
    }
}

/// Text that is not the name of a scheduling class.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("`{0}` is not a scheduling class: write other, fifo:1 to fifo:99, or rr:1 to rr:99")]
pub struct ParseClassError(String);

impl FromStr for Class {
    type Err = ParseClassError;

    fn from_str(text: &str) -> Result<Self, ParseClassError> {
        let fail = || ParseClassError(text.to_owned());
        if text == "other" {
            return Ok(Self::Other);
        }
        let (name, priority) = text.split_once(':').ok_or_else(fail)?;
        let priority = priority.parse().ok().filter(|p| (1..=99).contains(p)).ok_or_else(fail)?;
        match name {
            "fifo" => Ok(Self::Fifo(priority)),
            "rr" => Ok(Self::RoundRobin(priority)),
            _ => Err(fail()),
        }
    }
}

/// The reason why a thread did not get its class.
#[derive(Debug, thiserror::Error)]
#[error("cannot set scheduling class {wanted} for this thread: {source}; {reason}")]
pub struct ClassError {
    /// The class that was requested.
    pub wanted: Class,
    /// The reason of the refusal, as far as it is known, and the remedy.
    pub reason: ClassRefused,
    /// The kernel's error.
    pub source: io::Error,
}

/// The reason why a scheduling class was refused.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum ClassRefused {
    /// Neither the privilege nor a resource limit allows the priority.
    Limit {
        /// The highest priority that RLIMIT_RTPRIO allows.
        allowed: u64,
    },
    /// The privilege is there, but the control group may not run real-time threads.
    Group {
        /// The file with the group's real-time limit.
        file: PathBuf,
    },
    /// The priority does not exist.
    NoSuchPriority,
    /// Another reason.
    Unknown,
}

impl fmt::Display for ClassRefused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Limit { allowed } => write!(
                f,
                "this user may use priorities up to {allowed} (RLIMIT_RTPRIO): raise `rtprio` in \
                 /etc/security/limits.d, or give CAP_SYS_NICE"
            ),
            Self::Group { file } => write!(
                f,
                "its control group has no time for real-time threads: write microseconds into {}",
                file.display()
            ),
            Self::NoSuchPriority => write!(f, "priorities go from 1 to 99"),
            Self::Unknown => write!(f, "the thread keeps its present class"),
        }
    }
}

/// Gives the calling thread a scheduling class. Threads and processes that it starts get the
/// ordinary one, so that a busy helper never takes the CPU from all others.
///
/// # Errors
/// [`ClassError`] with the reason; the thread keeps its class and can continue.
pub fn set_current_thread(wanted: Class) -> Result<(), ClassError> {
    let flags = if wanted.priority() > 0 { libc::SCHED_RESET_ON_FORK } else { 0 };
    // 0 is the calling thread.
    set(0, wanted, flags).map_err(|source| ClassError {
        wanted,
        reason: reason(&source, wanted, Path::new("/")),
        source,
    })
}

/// Gives another thread a scheduling class; its nice value stays (sched_setscheduler(2)).
///
/// # Errors
/// The kernel's.
pub fn set_thread(thread: u32, wanted: Class) -> io::Result<()> {
    set(thread as i32, wanted, 0)
}

fn set(thread: i32, wanted: Class, flags: i32) -> io::Result<()> {
    let (policy, priority) = wanted.policy();
    let priority = libc::c_int::from(priority);
    // The C library musl refuses its function of this name (ENOSYS), so the kernel is called.
    // SAFETY: the kernel's `struct sched_param` is one integer, which outlives the call.
    let set = unsafe {
        libc::syscall(libc::SYS_sched_setscheduler, thread, policy | flags, &raw const priority)
    };
    if set == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Returns the scheduling class of another thread; `None` if it has ended or has a rarer class.
#[must_use]
pub fn of_thread(thread: u32) -> Option<Class> {
    let mut priority: libc::c_int = 0;
    let thread = thread as i32;
    // SAFETY: the kernel's `struct sched_param` is one integer, which outlives the second call.
    let (policy, got) = unsafe {
        (
            libc::syscall(libc::SYS_sched_getscheduler, thread),
            libc::syscall(libc::SYS_sched_getparam, thread, &raw mut priority),
        )
    };
    if policy < 0 || got < 0 {
        return None;
    }
    let policy = libc::c_int::try_from(policy).ok()? & !libc::SCHED_RESET_ON_FORK;
    Class::from_policy(policy, priority.try_into().ok()?)
}

fn reason(source: &io::Error, wanted: Class, root: &Path) -> ClassRefused {
    match source.raw_os_error() {
        Some(libc::EINVAL) => return ClassRefused::NoSuchPriority,
        Some(libc::EPERM) => {}
        _ => return ClassRefused::Unknown,
    }
    let allowed = getrlimit(Resource::Rtprio).current.unwrap_or(u64::MAX);
    if u64::from(wanted.policy().1) > allowed && !may_set_priorities(root) {
        return ClassRefused::Limit { allowed };
    }
    match empty_group(root) {
        Some(file) => ClassRefused::Group { file },
        None => ClassRefused::Unknown,
    }
}

/// Whether the calling thread has CAP_SYS_NICE.
fn may_set_priorities(root: &Path) -> bool {
    const CAP_SYS_NICE: u32 = 23;
    crate::proc::capabilities(&root.join("proc/thread-self"))
        .is_some_and(|bits| bits >> CAP_SYS_NICE & 1 == 1)
}

/// Returns the file that gives the control group no time for real-time threads
/// (Documentation/scheduler/sched-rt-group.rst; only in version 1).
fn empty_group(root: &Path) -> Option<PathBuf> {
    let group = crate::proc::own_group(root, Some("cpu"))?;
    let file = Path::new("sys/fs/cgroup/cpu").join(group).join("cpu.rt_runtime_us");
    let runtime = std::fs::read_to_string(root.join(&file)).ok()?;
    (runtime.trim() == "0").then(|| Path::new("/").join(file))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(code: i32) -> io::Error {
        io::Error::from_raw_os_error(code)
    }

    #[test]
    fn classes_read_and_write_alike() {
        for text in ["other", "fifo:1", "rr:99"] {
            assert_eq!(text.parse::<Class>().unwrap().to_string(), text);
        }
        for text in ["fifo", "fifo:0", "rr:100", "idle:1", ""] {
            let error = text.parse::<Class>().unwrap_err().to_string();
            assert!(error.ends_with("write other, fifo:1 to fifo:99, or rr:1 to rr:99"), "{error}");
        }
    }

    #[test]
    fn a_thread_has_its_class_or_is_told_why_not() {
        std::thread::spawn(|| match set_current_thread(Class::Fifo(3)) {
            Ok(()) => {
                // SAFETY: 0 is the calling thread.
                let policy = unsafe { libc::sched_getscheduler(0) };
                assert_eq!(policy, libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK);
                set_current_thread(Class::Other).unwrap();
            }
            Err(error) => {
                let text = error.to_string();
                assert!(
                    text.starts_with("cannot set scheduling class fifo:3 for this thread: "),
                    "{text}"
                );
                assert_ne!(error.reason, ClassRefused::NoSuchPriority);
            }
        })
        .join()
        .unwrap();
        let error = set_current_thread(Class::Fifo(0)).unwrap_err();
        assert_eq!(error.reason, ClassRefused::NoSuchPriority);
        assert!(error.to_string().ends_with("priorities go from 1 to 99"), "{error}");
    }

    /// Runs in a thread without the privilege; the limit is that of the test's environment.
    #[test]
    fn without_the_privilege_the_limit_is_the_reason() {
        use rustix::thread::{CapabilitySet, CapabilitySets, capabilities, set_capabilities};
        std::thread::spawn(|| {
            let have = capabilities(None).unwrap();
            let effective = have.effective - CapabilitySet::SYS_NICE;
            set_capabilities(None, CapabilitySets { effective, ..have }).unwrap();
            if getrlimit(Resource::Rtprio).current != Some(0) {
                eprintln!("skipped: RLIMIT_RTPRIO is not 0 here");
                return;
            }
            let error = set_current_thread(Class::RoundRobin(5)).unwrap_err();
            assert_eq!(error.reason, ClassRefused::Limit { allowed: 0 });
            assert!(error.to_string().contains("priorities up to 0 (RLIMIT_RTPRIO)"), "{error}");
        })
        .join()
        .unwrap();
    }

    #[test]
    fn with_the_privilege_an_empty_control_group_is_the_reason() {
        let root = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write("proc/thread-self/status", "Name:\tx\nCapEff:\t000001ffffffffff\n");
        write("proc/self/cgroup", "5:cpu,cpuacct:/radio\n0::/init.scope\n");
        let file = "sys/fs/cgroup/cpu/radio/cpu.rt_runtime_us";
        write(file, "0\n");
        let found = reason(&refused(libc::EPERM), Class::Fifo(99), root.path());
        assert_eq!(found, ClassRefused::Group { file: Path::new("/").join(file) });
        assert!(found.to_string().ends_with(&format!("write microseconds into /{file}")));
        write(file, "950000\n");
        let found = reason(&refused(libc::EPERM), Class::Fifo(99), root.path());
        assert_eq!(found, ClassRefused::Unknown);
    }
}
