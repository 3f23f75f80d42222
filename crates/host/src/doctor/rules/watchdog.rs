//! The kernel's watchdogs, which wake every processor every few seconds
//! (Documentation/admin-guide/lockup-watchdogs.rst).

use crate::doctor::{Finding, MachineFiles};
use millstream_cpu::CpuSet;

const MASK: &str = "proc/sys/kernel/watchdog_cpumask";
const SWITCH: &str = "proc/sys/kernel/watchdog";
const RISK: &str = "the kernel no longer reports when it hangs on these CPUs";

/// Checks whether the lockup watchdogs interrupt the stream's CPUs.
pub fn check(view: &MachineFiles) -> Vec<Finding> {
    let Some((on, seen)) = view.number(SWITCH) else { return Vec::new() };
    let mask = view.read(MASK);
    let watched: CpuSet =
        mask.as_ref().and_then(|mask| mask.value.parse().ok()).unwrap_or_else(|| view.online());
    let stream = view.stream_cpus();
    let seen = [seen].into_iter().chain(mask);
    if on == 0 || !watched.iter().any(|cpu| stream.contains(cpu)) {
        return vec![Finding::good("no watchdog interrupts the stream's CPUs").seen(seen)];
    }
    let others: CpuSet = watched.iter().filter(|cpu| !stream.contains(*cpu)).collect();
    let says = format!("the watchdog interrupts the stream's {}", stream.named());
    let finding = Finding::minor(says).seen(seen);
    vec![match others.is_empty() {
        true => finding.mend_by_write(SWITCH, "0").at_risk(RISK),
        false => finding.mend_by_write(MASK, others.to_string()).at_risk(RISK),
    }]
}

#[cfg(test)]
mod tests {
    use super::{MASK, check};
    use crate::doctor::Verdict::{Absent, Good, Minor};
    use crate::doctor::machine::TestMachine;

    #[test]
    fn only_the_streams_cpus_matter() {
        let watched = |mask: &str| {
            TestMachine::with_two_cpus().with("proc/sys/kernel/watchdog", "1\n").with(MASK, mask)
        };
        let found = watched("0-1\n").one(check);
        assert_eq!(found.verdict, Minor);
        let mend = found.mend.unwrap();
        assert_eq!(mend.command, "sysctl -w kernel.watchdog_cpumask=0");
        assert!(mend.risk.is_some());
        let alone = watched("1\n").one(check).mend.unwrap();
        assert_eq!(alone.command, "sysctl -w kernel.watchdog=0", "nobody else to watch");
        assert!(alone.risk.is_some());
        assert_eq!(watched("0\n").verdict(check), Good);
        assert_eq!(TestMachine::with_two_cpus().verdict(check), Absent);
        let off = watched("0-1\n").with("proc/sys/kernel/watchdog", "0\n");
        assert_eq!(off.verdict(check), Good);
    }
}
