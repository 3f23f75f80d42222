//! Threads and the CPUs they run on.

use crate::cpu_set::CpuSet;
use std::io;

/// Why a thread could not be pinned.
#[derive(Debug, thiserror::Error)]
#[error("cannot run on CPU {cpu}: {source}; this process may use CPUs {allowed}")]
pub struct PinError {
    /// The CPU asked for.
    pub cpu: usize,
    /// CPUs that are allowed.
    pub allowed: CpuSet,
    /// What the kernel answered.
    pub source: io::Error,
}

/// The CPUs that the calling thread may run on (sched_getaffinity(2)): what `taskset`,
/// cpusets and containers left.
///
/// # Errors
/// The kernel's, on machines with more CPUs than the mask holds (1024).
pub fn allowed_cpus() -> io::Result<CpuSet> {
    let mask = rustix::thread::sched_getaffinity(None)?;
    Ok((0..rustix::thread::CpuSet::MAX_CPU).filter(|cpu| mask.is_set(*cpu)).collect())
}

/// Lets the calling thread run on `cpu` only (sched_setaffinity(2)).
///
/// # Errors
/// [`PinError`] when the CPU does not exist or is not allowed.
pub fn pin_current_thread(cpu: usize) -> Result<(), PinError> {
    let fail = |source| PinError { cpu, allowed: allowed_cpus().unwrap_or_default(), source };
    if cpu >= rustix::thread::CpuSet::MAX_CPU {
        return Err(fail(io::ErrorKind::InvalidInput.into()));
    }
    let mut mask = rustix::thread::CpuSet::new();
    mask.set(cpu);
    rustix::thread::sched_setaffinity(None, &mask).map_err(|errno| fail(errno.into()))
}

/// Names the calling thread for `ps -L`, `top -H` and traces. The kernel keeps 15 bytes.
///
/// # Errors
/// The kernel's.
pub fn name_current_thread(name: &str) -> io::Result<()> {
    let bytes: Vec<u8> = name.bytes().filter(|byte| *byte != 0).take(15).collect();
    let name = std::ffi::CString::new(bytes).expect("zeros were left out");
    Ok(rustix::thread::set_name(&name)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pinned_thread_is_allowed_its_cpu_only() {
        let first = allowed_cpus().unwrap().iter().next().unwrap();
        std::thread::spawn(move || {
            pin_current_thread(first).unwrap();
            assert_eq!(allowed_cpus().unwrap(), CpuSet::from_iter([first]));
        })
        .join()
        .unwrap();
    }

    #[test]
    fn pinning_to_no_cpu_says_which_there_are() {
        for cpu in [1023, usize::MAX] {
            let error = pin_current_thread(cpu).unwrap_err().to_string();
            let allowed = allowed_cpus().unwrap();
            assert!(error.starts_with(&format!("cannot run on CPU {cpu}: ")), "{error}");
            assert!(error.ends_with(&format!("this process may use CPUs {allowed}")), "{error}");
        }
    }

    #[test]
    fn a_long_name_is_cut() {
        std::thread::spawn(|| {
            name_current_thread("a-name-that-is-too-long").unwrap();
            let name = std::fs::read_to_string("/proc/thread-self/comm").unwrap();
            assert_eq!(name, "a-name-that-is-\n");
        })
        .join()
        .unwrap();
    }
}
