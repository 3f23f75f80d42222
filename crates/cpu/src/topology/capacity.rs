//! Capacity: work per time of a CPU relative to the fastest of the machine.
//!
//! Three sources, the best first: `cpu_capacity` (the scheduler's own value, where the architecture
//! sets it: Documentation/ABI/testing/sysfs-devices-system-cpu), the highest clock
//! (`cpufreq/cpuinfo_max_freq`), and the core types of Intel's hybrids, which the kernel shows as
//! the CPUs of two performance monitors (`/sys/devices/cpu_core`, `/sys/devices/cpu_atom`).

use super::{TopologyError, read_cpus, read_number};
use crate::cpu_set::CpuSet;
use std::collections::BTreeMap;
use std::path::Path;

/// Capacity of the fastest CPU.
pub const FULL: u32 = 1024;

/// Work per clock of an Intel efficiency core relative to a performance core, in percent: between
/// the single-thread results of SPEC CPU 2017 (fp 54 %, int 64 % of a performance core at 3.9
/// against 5.2 GHz, AnandTech's review of the Core i9-12900K). Used only where the kernel does not
/// report the capacity.
const ATOM_WORK_PER_CLOCK_PERCENT: u64 = 75;

/// Reads the capacity of every CPU of `online`, below `root`.
pub(super) fn read(root: &Path, online: &CpuSet) -> Result<BTreeMap<usize, u32>, TopologyError> {
    let told = each(root, online, "cpu_capacity")?;
    let speeds = if told.is_empty() {
        let devices = root.join("sys/devices");
        let atoms = read_cpus(&devices.join("cpu_atom/cpus"))?.unwrap_or_default();
        let mut clocks = each(root, online, "cpufreq/cpuinfo_max_freq")?;
        if clocks.is_empty() {
            clocks = online.iter().map(|cpu| (cpu, 1000)).collect();
        }
        for (cpu, clock) in &mut clocks {
            *clock *= if atoms.contains(*cpu) { ATOM_WORK_PER_CLOCK_PERCENT } else { 100 };
        }
        clocks
    } else {
        told
    };
    let most = speeds.values().copied().max().unwrap_or(0).max(1);
    let share = |speed: u64| u32::try_from(speed * u64::from(FULL) / most).unwrap_or(FULL).max(1);
    // A CPU without a value counts as one of the fastest, so that it is never avoided without a
    // reason.
    Ok(online.iter().map(|cpu| (cpu, speeds.get(&cpu).map_or(FULL, |s| share(*s)))).collect())
}

/// Reads a number for every CPU that has a valid one.
fn each(root: &Path, online: &CpuSet, file: &str) -> Result<BTreeMap<usize, u64>, TopologyError> {
    let mut found = BTreeMap::new();
    for cpu in online.iter() {
        let path = root.join(format!("sys/devices/system/cpu/cpu{cpu}")).join(file);
        let number = read_number(&path)?.and_then(|number| u64::try_from(number).ok());
        if let Some(number) = number.filter(|number| (1..1 << 40).contains(number)) {
            found.insert(cpu, number);
        }
    }
    Ok(found)
}
