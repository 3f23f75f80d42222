//! The daemon that moves interrupts between CPUs.

use crate::doctor::{Finding, MachineFiles};
use millstream_cpu::folders;

/// Checks whether irqbalance runs, which moves interrupts.
pub fn check(view: &MachineFiles) -> Vec<Finding> {
    let processes = folders::numbers(&view.root().join("proc"));
    if processes.is_empty() {
        return Vec::new();
    }
    let mut names = processes.iter().filter_map(|pid| view.read(&format!("proc/{pid}/comm")));
    let balancer = names.find(|name| name.value == "irqbalance");
    vec![match balancer {
        Some(seen) => Finding::matters("irqbalance runs").seen([seen]).mend_by_hand(
            "systemctl stop irqbalance  # or IRQBALANCE_BANNED_CPULIST in /etc/default/irqbalance",
        ),
        None => Finding::good("no irqbalance runs"),
    }]
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::doctor::Verdict::{Absent, Good, Matters};
    use crate::doctor::machine::TestMachine;

    #[test]
    fn it_is_found_by_its_name() {
        assert_eq!(TestMachine::new().verdict(check), Absent);
        let machine = TestMachine::new().with("proc/1/comm", "init\n");
        assert_eq!(machine.verdict(check), Good);
        assert_eq!(machine.with("proc/317/comm", "irqbalance\n").verdict(check), Matters);
    }
}
