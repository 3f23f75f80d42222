//! The daemon that moves interrupts between CPUs.

use crate::doctor::{DoctorRule, Evidence, Finding, MachineFiles, Topic};

/// See the file's head.
pub const RULE: DoctorRule = DoctorRule {
    id: "irqbalance",
    topic: Topic::Network,
    why: "irqbalance undoes every placement of interrupts within ten seconds",
    check,
};

fn check(view: &MachineFiles) -> Vec<Finding> {
    let is_number = |name: &String| name.bytes().all(|byte| byte.is_ascii_digit());
    let processes: Vec<_> = view.names("proc").into_iter().filter(is_number).collect();
    if processes.is_empty() {
        return Vec::new();
    }
    let name = |pid: &String| view.read(&format!("proc/{pid}/comm"));
    let balancer = processes
        .iter()
        .find_map(|pid| name(pid).filter(|name: &Evidence| name.value == "irqbalance"));
    vec![match balancer {
        Some(seen) => Finding::matters("irqbalance runs").seen([seen]).mend_by_hand(
            "systemctl stop irqbalance  # or IRQBALANCE_BANNED_CPULIST in /etc/default/irqbalance",
        ),
        None => Finding::good("no irqbalance runs"),
    }]
}

#[cfg(test)]
mod tests {
    use super::RULE;
    use crate::doctor::Verdict::{Absent, Good, Matters};
    use crate::doctor::machine::TestMachine;

    #[test]
    fn it_is_found_by_its_name() {
        assert_eq!(TestMachine::new().verdict(&RULE), Absent);
        let machine = TestMachine::new().with("proc/1/comm", "init\n");
        assert_eq!(machine.verdict(&RULE), Good);
        assert_eq!(machine.with("proc/317/comm", "irqbalance\n").verdict(&RULE), Matters);
    }
}
