//! CPU time spent and sleeps, for measurements (clock_gettime(2), getrusage(2)).

use rustix::time::{ClockId, clock_gettime};
use std::time::Duration;

/// Returns the CPU time of all threads of this process so far, user and system.
#[must_use]
pub fn process_cpu_time() -> Duration {
    read(ClockId::ProcessCPUTime)
}

/// Returns the CPU time of the calling thread so far, user and system.
#[must_use]
pub fn thread_cpu_time() -> Duration {
    read(ClockId::ThreadCPUTime)
}

/// Returns how often the threads of this process have gone to sleep so far (voluntary context
/// switches). Each sleep ends with a wake-up.
#[must_use]
pub fn process_sleeps() -> u64 {
    sleeps(libc::RUSAGE_SELF)
}

/// Returns how often the calling thread has gone to sleep so far.
#[must_use]
pub fn thread_sleeps() -> u64 {
    sleeps(libc::RUSAGE_THREAD)
}

fn sleeps(whose: libc::c_int) -> u64 {
    // SAFETY: a plain C structure for which all-zero bytes are a valid value.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the kernel writes one live `rusage`.
    let rc = unsafe { libc::getrusage(whose, &raw mut usage) };
    debug_assert_eq!(rc, 0);
    usage.ru_nvcsw.unsigned_abs()
}

fn read(clock: ClockId) -> Duration {
    // CPU clocks count up from zero, so neither part is negative.
    let time = clock_gettime(clock);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs() as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_costs_time_of_thread_and_process() {
        let (process, thread) = (process_cpu_time(), thread_cpu_time());
        while thread_cpu_time() == thread {
            std::hint::spin_loop();
        }
        assert!(process_cpu_time() > process);
        assert!(process_cpu_time() >= thread_cpu_time());
    }

    #[test]
    fn each_sleep_counts() {
        let (process, thread) = (process_sleeps(), thread_sleeps());
        (0..10).for_each(|_| std::thread::sleep(Duration::from_micros(200)));
        assert!(thread_sleeps() >= thread + 10);
        assert!(process_sleeps() >= process + 10);
    }
}
