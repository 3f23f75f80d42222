//! The activity of the whole machine over a time, from proc(5).

use std::fs;
use std::path::Path;

/// Counters of the machine at one moment.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct MachineCounters {
    /// Interrupts since boot.
    pub interrupts: u64,
    /// Context switches since boot.
    pub switches: u64,
    /// Time of all CPUs that was spent busy, ticks.
    pub busy_ticks: u64,
    /// Time that the hypervisor gave to others, ticks.
    pub steal_ticks: u64,
    /// All time of all CPUs, ticks.
    pub all_ticks: u64,
    /// The load average of one minute.
    pub load_average: f64,
}

impl MachineCounters {
    /// Reads `proc/stat` and `proc/loadavg` below `root`; missing values are 0.
    #[must_use]
    pub fn read(root: &Path) -> Self {
        let stat = fs::read_to_string(root.join("proc/stat")).unwrap_or_default();
        let average = fs::read_to_string(root.join("proc/loadavg")).unwrap_or_default();
        let numbers = |name: &str| -> Vec<u64> {
            let line = stat.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
            line.unwrap_or_default().split_whitespace().map_while(|n| n.parse().ok()).collect()
        };
        // user nice system idle iowait irq softirq steal; guest time is within user.
        let cpu = numbers("cpu");
        let at = |index: usize| cpu.get(index).copied().unwrap_or(0);
        let busy_ticks = [0, 1, 2, 5, 6].map(at).iter().sum();
        Self {
            interrupts: numbers("intr").first().copied().unwrap_or(0),
            switches: numbers("ctxt").first().copied().unwrap_or(0),
            busy_ticks,
            steal_ticks: at(7),
            all_ticks: busy_ticks + at(3) + at(4) + at(7),
            load_average: average.split(' ').next().and_then(|n| n.parse().ok()).unwrap_or(0.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_counters_of_proc_are_found() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join("proc")).unwrap();
        let stat = "cpu  10 1 20 300 4 5 6 7 0 0\ncpu0 1 1 1 1\nintr 12345 0 9\nctxt 678\n";
        fs::write(root.path().join("proc/stat"), stat).unwrap();
        fs::write(root.path().join("proc/loadavg"), "0.52 0.58 0.59 1/97 1\n").unwrap();
        let expected = MachineCounters {
            interrupts: 12_345,
            switches: 678,
            busy_ticks: 42,
            steal_ticks: 7,
            all_ticks: 353,
            load_average: 0.52,
        };
        assert_eq!(MachineCounters::read(root.path()), expected);
        assert_eq!(MachineCounters::read(&root.path().join("none")), MachineCounters::default());
    }
}
