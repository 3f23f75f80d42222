//! CPU affinity and names of threads.

use crate::cpu_set::CpuSet;
use std::io;
use std::sync::OnceLock;

use rustix::thread::{CpuSet as Mask, Pid, sched_getaffinity, sched_setaffinity};

/// The reason why a thread could not be pinned.
#[derive(Debug, thiserror::Error)]
#[error("cannot run on CPU {cpu}: {source}; this process may use CPUs {allowed}")]
pub struct PinError {
    /// The CPU that was requested.
    pub cpu: usize,
    /// CPUs that are allowed.
    pub allowed: CpuSet,
    /// The kernel's error.
    pub source: io::Error,
}

/// Returns the CPUs that the calling thread may run on (sched_getaffinity(2)), as `taskset`,
/// cpusets and containers left them.
///
/// # Errors
/// The kernel's, on machines with more CPUs than the mask holds (1024).
pub fn allowed_cpus() -> io::Result<CpuSet> {
    Ok(cpus(&sched_getaffinity(None)?).collect())
}

fn cpus(mask: &Mask) -> impl Iterator<Item = usize> + '_ {
    (0..Mask::MAX_CPU).filter(|cpu| mask.is_set(*cpu))
}

/// The CPUs of the first pinned thread before it was pinned.
static BEFORE_PINNING: OnceLock<CpuSet> = OnceLock::new();

/// Returns the CPUs of the whole process: all that a thread of it may use, or could use before
/// [`pin_current_thread`] pinned it.
///
/// # Errors
/// The kernel's, as for [`allowed_cpus`].
pub fn process_cpus() -> io::Result<CpuSet> {
    let mut all: Vec<usize> = allowed_cpus()?.iter().collect();
    all.extend(BEFORE_PINNING.get().into_iter().flat_map(CpuSet::iter));
    for task in std::fs::read_dir("/proc/self/task")?.flatten() {
        let number = task.file_name().to_str().and_then(|name| name.parse().ok());
        // A thread that has ended meanwhile is skipped.
        let Some(task) = number.and_then(Pid::from_raw) else { continue };
        let Ok(mask) = sched_getaffinity(Some(task)) else { continue };
        all.extend(cpus(&mask));
    }
    Ok(all.into_iter().collect())
}

/// Lets the calling thread run wherever its process may, however narrowly the thread that
/// started it was pinned (sched_setaffinity(2)).
///
/// # Errors
/// The kernel's.
pub fn unpin_current_thread() -> io::Result<()> {
    let mut mask = Mask::new();
    process_cpus()?.iter().for_each(|cpu| mask.set(cpu));
    Ok(sched_setaffinity(None, &mask)?)
}

/// Lets the calling thread run on `cpu` only (sched_setaffinity(2)).
///
/// # Errors
/// [`PinError`] when the CPU does not exist or is not allowed.
pub fn pin_current_thread(cpu: usize) -> Result<(), PinError> {
    let fail = |source| PinError { cpu, allowed: allowed_cpus().unwrap_or_default(), source };
    if cpu >= Mask::MAX_CPU {
        return Err(fail(io::ErrorKind::InvalidInput.into()));
    }
    BEFORE_PINNING.get_or_init(|| allowed_cpus().unwrap_or_default());
    let mut mask = Mask::new();
    mask.set(cpu);
    sched_setaffinity(None, &mask).map_err(|errno| fail(errno.into()))
}

/// Lets the calling thread, and the threads that it starts, run on `cpus` only
/// (sched_setaffinity(2)).
///
/// # Errors
/// The kernel's, when none of them is allowed.
pub fn confine_current_thread(cpus: &CpuSet) -> io::Result<()> {
    BEFORE_PINNING.get_or_init(|| allowed_cpus().unwrap_or_default());
    Ok(sched_setaffinity(None, &mask_of(cpus))?)
}

/// Lets another thread run on `cpus` only (sched_setaffinity(2)).
///
/// # Errors
/// The kernel's: the thread has ended, is bound to its CPU, or none of the CPUs is allowed.
pub fn confine(thread: u32, cpus: &CpuSet) -> io::Result<()> {
    let thread = Pid::from_raw(thread as i32).ok_or(io::ErrorKind::NotFound)?;
    Ok(sched_setaffinity(Some(thread), &mask_of(cpus))?)
}

fn mask_of(cpus: &CpuSet) -> Mask {
    let mut mask = Mask::new();
    cpus.iter().filter(|cpu| *cpu < Mask::MAX_CPU).for_each(|cpu| mask.set(cpu));
    mask
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
    fn a_thread_of_a_pinned_one_can_be_let_go() {
        let all = process_cpus().unwrap();
        let first = all.iter().next().unwrap();
        std::thread::spawn(move || {
            pin_current_thread(first).unwrap();
            let child = std::thread::spawn(|| {
                let inherited = allowed_cpus().unwrap();
                unpin_current_thread().unwrap();
                (inherited, allowed_cpus().unwrap())
            });
            assert_eq!(child.join().unwrap(), (CpuSet::from_iter([first]), all));
            assert_eq!(allowed_cpus().unwrap(), CpuSet::from_iter([first]), "it alone");
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
