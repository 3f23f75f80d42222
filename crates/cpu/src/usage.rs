//! CPU time spent, for measurements (clock_gettime(2)).

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
}
