//! The frequency governor of the stream's processors (Documentation, pm/cpufreq.rst).

use crate::doctor::{Finding, MachineFiles, Write};

/// Checks whether the clock of the stream's CPUs follows their load.
pub fn check(view: &MachineFiles) -> Vec<Finding> {
    let path = |cpu| format!("sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_governor");
    let cpus = view.stream_cpus();
    let found: Vec<_> = cpus.iter().filter_map(|cpu| Some((cpu, view.read(&path(cpu))?))).collect();
    if found.is_empty() {
        return vec![match super::steal::is_guest(view) {
            true => Finding::unknown("the hypervisor sets the clock frequency: check it there"),
            false => Finding::absent("no cpufreq driver: the firmware sets the clock frequency"),
        }];
    }
    let slow = found.iter().filter(|(_, governor)| governor.value != "performance");
    let slow: Vec<_> = slow.map(|(cpu, _)| *cpu).collect();
    let seen = found.iter().map(|found| found.1.clone());
    if slow.is_empty() {
        return vec![Finding::good("the stream's CPUs run at full clock").seen(seen)];
    }
    let write = |cpu| Write { path: path(cpu), text: "performance".to_owned() };
    let says = format!("the clock frequency of {} stream CPUs follows the load", slow.len());
    vec![Finding::matters(says).seen(seen).mend_by_writes(slow.into_iter().map(write).collect())]
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::doctor::Verdict::{Absent, Good, Matters, Unknown};
    use crate::doctor::machine::TestMachine;

    const FILE: &str = "sys/devices/system/cpu/cpu1/cpufreq/scaling_governor";

    #[test]
    fn only_performance_is_good() {
        let machine = TestMachine::with_two_cpus().with(FILE, "powersave\n");
        let found = machine.one(check);
        assert_eq!(found.verdict, Matters);
        assert_eq!(found.mend.unwrap().command, format!("echo performance > /{FILE}"));
        assert_eq!(machine.with(FILE, "performance\n").verdict(check), Good);
    }

    #[test]
    fn a_guest_cannot_know() {
        assert_eq!(TestMachine::with_two_cpus().verdict(check), Absent);
        let guest = TestMachine::with_two_cpus().with("proc/cpuinfo", "flags\t: fpu hypervisor\n");
        assert_eq!(guest.verdict(check), Unknown);
    }
}
