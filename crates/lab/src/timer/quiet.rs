//! Measures that stop the machine itself from being late during a measurement.

use std::fs::{File, OpenOptions};
use std::io::Write;

use rustix::mm::{MlockAllFlags, mlockall, munlockall};

/// Locked memory, and processors that do not enter deep sleep; both end with this value.
#[derive(Debug)]
pub struct LowLatencyGuard {
    /// The request holds as long as the file is open (Documentation/power/pm_qos_interface.rst).
    shallow: Option<File>,
    locked: bool,
}

impl LowLatencyGuard {
    /// Locks this process's memory, present and future, and requests a wake-up latency of 0. Skips
    /// what lacks rights: see [`LowLatencyGuard::missing`].
    #[must_use]
    pub fn begin() -> Self {
        let locked = mlockall(MlockAllFlags::CURRENT | MlockAllFlags::FUTURE).is_ok();
        let shallow = OpenOptions::new().write(true).open("/dev/cpu_dma_latency");
        let ask = |mut file: File| file.write_all(&0i32.to_ne_bytes()).map(|()| file);
        Self { shallow: shallow.and_then(ask).ok(), locked }
    }

    /// The refused requests, and the rights that they need.
    #[must_use]
    pub fn missing(&self) -> Vec<&'static str> {
        let memory = "memory is not locked (CAP_IPC_LOCK, or a higher RLIMIT_MEMLOCK)";
        let idle = "processors may go to deep sleep (/dev/cpu_dma_latency: root)";
        [(self.locked, memory), (self.shallow.is_some(), idle)]
            .into_iter()
            .filter_map(|(had, what)| (!had).then_some(what))
            .collect()
    }
}

impl Drop for LowLatencyGuard {
    fn drop(&mut self) {
        if self.locked {
            // The memory no longer needs to be locked.
            let _ = munlockall();
        }
    }
}
